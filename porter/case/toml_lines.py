"""Which line of a TOML file a key stands on (tomllib does not say), and diagnostics that point there."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from porter.model import Diagnostic
from porter.source import Span

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[\w.-]+)\s*=")


MOST_CHARACTERS = 4 << 20
MOST_KEYS = 20_000
MOST_STEPS = 64  # of a dotted key: reading takes time that grows with their square


def parsed_toml(text: str) -> dict[str, Any]:
    """What tomllib makes of a text. Raises TOMLDecodeError, also where it would fail otherwise or take very long."""
    if len(text) > MOST_CHARACTERS:
        raise tomllib.TOMLDecodeError(f"more than {MOST_CHARACTERS >> 20} million characters (at line 1, column 1)")
    keys = 0
    for number, line in enumerate(text.split("\n"), 1):
        key, equals, _ = line.partition("=")
        keys += bool(equals)
        if keys > MOST_KEYS:
            raise tomllib.TOMLDecodeError(f"more than {MOST_KEYS} keys (at line {number}, column 1)")
        if key.count(".") > MOST_STEPS and (equals or key.lstrip().startswith("[")):
            raise tomllib.TOMLDecodeError(f"a key of more than {MOST_STEPS} steps (at line {number}, column 1)")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply (at line 1, column 1)") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise tomllib.TOMLDecodeError(f"{str(error).split(';')[0]} (at line 1, column 1)") from None


def key_line(text: str, where: Iterable[str]) -> int:
    """The 1-based line of a key given as a path; 1 when the path is empty, the table's line when the key is missing.

    Elements of an array of tables are named by the value of their `name` key or by index: ("instances", "1", "when"),
    ("buffers", "input", "shape"). A key inside an inline table is found as its line's key.
    """
    path = [str(w) for w in where if str(w) != ""]
    if not path:
        return 1
    best, depth = 1, 0
    for line, found in _paths(text):
        matched = 0
        for alternatives, want in zip(found, path, strict=False):
            if want not in alternatives:
                break
            matched += 1
        if matched == len(found) and matched > depth:  # every step of the file's key is a step of the path
            best, depth = line, matched
    return best


def _paths(text: str) -> list[tuple[int, list[tuple[str, ...]]]]:
    """Each header and key with its path; a step of an array of tables is two steps: the array, then index or name."""
    rows: list[tuple[int, list[tuple[str, ...]]]] = []
    counts: dict[str, int] = {}
    prefix: list[tuple[str, ...]] = []
    element: list[int] = []  # rows of the current array element, to be given its name when that is read
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            name = header.group(2).strip()
            prefix = [(part.strip().strip("\"'"),) for part in name.split(".")]
            element = []
            if header.group(1) == "[[":
                index = counts.get(name, 0)
                counts[name] = index + 1
                if index == 0:
                    rows.append((number, list(prefix)))
                prefix = [*prefix, (str(index),)]
                element = [len(rows)]
            rows.append((number, list(prefix)))
            continue
        key = _KEY.match(line)
        if not key:
            continue
        name = key.group(1).strip("\"'")
        if element:
            element.append(len(rows))
        rows.append((number, [*prefix, (name,)]))
        if element and name == "name":
            value = line.split("=", 1)[1].split("#")[0].strip().strip("\"'")
            depth = len(prefix) - 1
            prefix[depth] = (*prefix[depth], value)
            for i in element:
                rows[i][1][depth] = prefix[depth]
    return rows


def span_at(path: Path, text: str, where: Iterable[str]) -> Span:
    return Span(str(path), key_line(text, where) if text else 0)


def diagnostic_at(
    path: Path, text: str, code: str, message: str, where: Iterable[str] = (), help: str = ""
) -> Diagnostic:
    """A diagnostic that names the file, the line and the key."""
    steps = [str(w) for w in where if str(w) != ""]
    key = ".".join(steps)
    return Diagnostic(code, f"{key}: {message}" if key else message, span_at(path, text, steps), help=help)


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean x?`, or the list of what is known."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.55)
    return f"did you mean `{close[0]}`?" if close else f"known: {', '.join(names)}"
