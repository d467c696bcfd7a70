"""PTX and SASS behind lines of a port, through the compiler's line table.

The table names lines of the port and of the corpus library; where it names the library, the line is found by the call
that the port makes, and where it names nothing, by what stands before. Such places are marked with `~`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import porter.corpus
from porter.plain_files import read_plain_text
from porter.syntax import module_tree

_LOC = re.compile(r"^[ \t]*\.loc\s+(\d+)\s+(\d+)[^\n]*", re.MULTILINE)
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_FOUND = 1 << 20  # added to lines that were found, not named: assemblers keep numbers apart, but not files


@dataclass(frozen=True)
class PortLine:
    """A line of the port; `named` when the compiler names it."""

    line: int
    named: bool

    def __str__(self) -> str:
        return f"{'' if self.named else '~'}{self.line}"


@dataclass(frozen=True)
class PortListing:
    """What the line table is held against: the port's file name, its lines, and those of them that are device code."""

    name: str
    lines: list[str]
    device: Collection[int]
    called: dict[str, list[int]] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for n in sorted(self.device):
            for name in re.findall(r"\blib\.(\w+)", self.lines[n - 1]):
                self.called.setdefault(name, []).append(n)


def instructions(ptx: str, listing: PortListing) -> Iterator[tuple[PortLine, str]]:
    """(place, instruction) of the PTX in order, as far as the places are known."""
    at: PortLine | None = None
    places = iter(_places(ptx, listing))
    for row in ptx.splitlines():
        if _LOC.match(row):
            at = next(places)
        elif at is not None and row.startswith("\t") and not row.strip().startswith((".", "//", "{", "}")):
            yield at, row.strip()


def relabelled(ptx: str, listing: PortListing) -> str:
    """The same PTX with a line table that names lines of the port only (see `place_in`)."""
    number = max((int(n) for n, _ in _FILE.findall(ptx)), default=0) + 1
    places = iter(_places(ptx, listing))

    def one(match: re.Match[str]) -> str:
        place = next(places)
        return f"\t.loc\t{number} {place.line + _FOUND * (not place.named)} 0" if place else match[0]

    text = _LOC.sub(one, ptx)
    return f'{text.rstrip()}\n\t.file\t{number} "{listing.name}"\n'


def place_in(file: str, line: int, listing: PortListing) -> PortLine | None:
    """The place of an instruction whose cubin is the port's own, or made of relabelled PTX; None outside its code."""
    at = PortLine(line % _FOUND, line < _FOUND)
    inside = at.line in listing.device and Path(file).name == listing.name and not _in_library(file)
    return at if inside else None


def _places(ptx: str, listing: PortListing) -> list[PortLine | None]:
    """The port's line of each `.loc`, in order; None before the first that is known."""
    files: Mapping[str, str] = dict(_FILE.findall(ptx))
    found: list[PortLine | None] = []
    last: int | None = None  # the line that was named last
    for row in ptx.splitlines():
        loc = _LOC.match(row)
        if loc is None:
            continue
        call = _INLINED.search(loc[0])
        path, line = files.get(loc[1], ""), int(loc[2])
        if call and _in_library(path):
            path, line = files.get(call[1], ""), int(call[2])
        if Path(path).name == listing.name and not _in_library(path) and line in listing.device:
            last = line
            found.append(PortLine(line, True))
            continue
        calls = sorted({n for name in _functions_at(path, line) for n in listing.called.get(name, ())})
        near = min(calls, key=lambda n: (abs(n - (last or 0)), n), default=last)
        found.append(PortLine(near, False) if near is not None else None)
    return found


def _in_library(path: str) -> bool:
    return "porter/corpus/" in Path(path).as_posix()


@cache
def _functions_at(path: str, line: int) -> frozenset[str]:
    """Functions of the corpus library that a line of it may be reached by: the one that holds it and its callers."""
    if not _in_library(path):
        return frozenset()
    holders = _library().get(Path(path).name, {})
    inside = next((name for name, (first, last, _) in holders.items() if first <= line <= last), None)
    if inside is None:
        return frozenset()
    calls = {name: uses for functions in _library().values() for name, (_, _, uses) in functions.items()}
    reached, fresh = {inside}, {inside}
    while fresh:
        fresh = {name for name, uses in calls.items() if uses & fresh} - reached
        reached |= fresh
    return frozenset(reached)


@cache
def _library() -> dict[str, dict[str, tuple[int, int, frozenset[str]]]]:
    """File of the library -> function -> first and last line, and the names that it calls."""
    root = Path(porter.corpus.__path__[0]) / "lib"
    return {
        path.name: {
            node.name: (
                min([node.lineno, *(d.lineno for d in node.decorator_list)]),
                node.end_lineno or node.lineno,
                frozenset(_called(node)),
            )
            for node in module_tree(read_plain_text(path)).body
            if isinstance(node, ast.FunctionDef)
        }
        for path in sorted(root.rglob("*.py"))
    }


def _called(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            target = node.func
            if isinstance(target, ast.Name):
                yield target.id
            elif isinstance(target, ast.Attribute):
                yield target.attr
