"""The parts of a port that the agent may write, and the splice that cannot reach outside of them.

A region is a statement with a hole, the body of a kernel or of a device function, or `helpers`: functions put before
the kernels. New code is parsed by itself and indented as its region is, so it cannot end a block or swallow a line.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from porter.provenance.hole_markers import open_holes
from porter.source import lines_of
from porter.syntax import module_tree

HELPERS = "helpers"
MOST = 60_000  # characters of a region
_DEVICE = ("kernel", "jit")
_IMPORTS = ("cutlass", "math")
_BUILTINS = frozenset(dir(builtins))
# Control characters, and what one reader takes for the end of a line and another does not.
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


class EditRefused(ValueError):
    """The edit is not one that the agent may make; the text says why."""


@dataclass(frozen=True)
class EditableRegion:
    """Lines first..last (from 1; empty when last < first) of the port, indented by `indent`."""

    name: str
    first: int
    last: int
    indent: str

    def contains(self, other: EditableRegion) -> bool:
        return self.first <= other.first and other.last <= self.last


@dataclass(frozen=True)
class Draft:
    """A port's text and its regions."""

    text: str
    regions: tuple[EditableRegion, ...]

    def region(self, name: str) -> EditableRegion:
        """Raises EditRefused for a name that is none."""
        for region in self.regions:
            if region.name == name:
                return region
        raise EditRefused(f"there is no region {name!r}; regions are {', '.join(r.name for r in self.regions)}")

    def code(self, name: str) -> str:
        region = self.region(name)
        return textwrap.dedent("\n".join(lines_of(self.text)[region.first - 1 : region.last]))

    @property
    def open_holes(self) -> tuple[int, ...]:
        return open_holes(self.text)


def draft_of(text: str, every_body: bool) -> Draft:
    """The regions of a port: its holes, the bodies of the functions around them (of all with `every_body`), helpers."""
    tree = module_tree(text)
    lines = lines_of(text)
    regions: list[EditableRegion] = []
    for function in _device_functions(tree):
        marks = list(_hole_statements(function))
        first, last = _body_lines(function)
        if marks or every_body:
            regions.append(EditableRegion(f"body:{function.name}", first, last, _indent(lines[first - 1])))
        for number, statement in marks:
            above = statement.lineno - 1
            while above > first and lines[above - 1].strip().startswith("# CUDA"):
                above -= 1
            end = statement.end_lineno or statement.lineno
            regions.append(EditableRegion(f"hole-{number}", above + 1, end, _indent(lines[statement.lineno - 1])))
    start = min((_first_line(n) for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)), default=1)
    regions.append(EditableRegion(HELPERS, start, start - 1, ""))
    return Draft(text, tuple(regions))


def replace_code(draft: Draft, name: str, code: str) -> Draft:
    """The draft with other code in a region. Raises EditRefused: unknown region, not whole statements, too much."""
    region = draft.region(name)
    if len(code) > MOST:
        raise EditRefused(f"{len(code)} characters are too many for a region (at most {MOST})")
    odd = _ODD.search(code)
    if odd:
        raise EditRefused(f"the code has the character U+{ord(odd[0]):04X}, which a port may not contain")
    code = textwrap.dedent(re.sub(r"\r\n?", "\n", code).expandtabs(4)).strip("\n")
    try:
        tree = module_tree(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        at = f" at its line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise EditRefused(f"the code is not valid Python on its own{at}: {getattr(error, 'msg', error)}") from None
    if name == HELPERS:
        _check_helpers(draft, region, tree)
        fresh = [*lines_of(code), "", ""] if tree.body else []
    else:
        if not tree.body:
            raise EditRefused("the code has no statement; use `pass` where nothing is to be done")
        if any(isinstance(n, ast.Import | ast.ImportFrom) for n in ast.walk(tree)):
            raise EditRefused("imports belong in the region `helpers`")
        fresh = [f"{region.indent}{line}".rstrip() for line in _indentable(code, tree)]
    lines = lines_of(draft.text)
    text = "\n".join([*lines[: region.first - 1], *fresh, *lines[region.last :]]) + "\n"
    made = Draft(text, tuple(_moved(draft, region, len(fresh), text)))
    _check_outside(draft.text, text, name)
    return made


def _check_helpers(draft: Draft, region: EditableRegion, tree: ast.Module) -> None:
    """Helpers are functions, constants and imports of the DSL under names that the port does not have."""
    lines = lines_of(draft.text)
    outside = module_tree("\n".join([*lines[: region.first - 1], *lines[region.last :]]))
    taken = {name for node in outside.body for name in _bound(node)}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            for module in modules:
                far = isinstance(node, ast.ImportFrom) and node.level
                if not module or module.split(".")[0] not in _IMPORTS or far:
                    raise EditRefused(f"helpers may import from {' and '.join(_IMPORTS)}, not from {module}")
        elif any(isinstance(n, ast.Import | ast.ImportFrom) for n in ast.walk(node)):
            raise EditRefused("an import in helpers stands at the top level, not inside a function")
        elif not isinstance(node, ast.FunctionDef | ast.Assign):
            raise EditRefused(f"helpers are functions, constants and imports, not {type(node).__name__}")
        if isinstance(node, ast.Assign) and not all(isinstance(t, ast.Name) for t in node.targets):
            raise EditRefused(f"a constant in helpers must be a new name, not `{ast.unparse(node.targets[0])}`")
        hidden = _BUILTINS & set(_bound(node))
        if hidden:
            raise EditRefused(f"{', '.join(sorted(hidden))} is a Python builtin that the port uses")
        clash = taken & set(_bound(node))
        if clash and not isinstance(node, ast.Import | ast.ImportFrom):
            raise EditRefused(f"the port has {', '.join(sorted(clash))} already, outside of your regions")
        if clash and not any(ast.dump(node) == ast.dump(n) for n in outside.body) and not _same_import(node, outside):
            raise EditRefused(f"the port has {', '.join(sorted(clash))} already, outside of your regions")


def _same_import(node: ast.stmt, outside: ast.Module) -> bool:
    """Whether every name that an import binds is bound to the same thing by the port's own imports."""
    known = {key for n in outside.body for key in _imported(n)}
    return all(key in known for key in _imported(node))


def _imported(node: ast.stmt) -> list[tuple[str, str, str]]:
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "", a.name, a.asname or a.name) for a in node.names]
    if isinstance(node, ast.Import):
        return [(a.name, "", a.asname or a.name.split(".")[0]) for a in node.names]
    return []


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a top-level statement binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (a.asname or a.name.split(".")[0] for a in node.names)
    else:
        yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _check_outside(before: str, after: str, name: str) -> None:
    """What is not the region stays: every other top-level statement, and the signature of the function."""
    old, new = module_tree(before).body, module_tree(after).body
    if name == HELPERS:
        kept = [ast.dump(n) for n in new]
        missing = [n for n in old if ast.dump(n) not in kept and not isinstance(n, ast.FunctionDef | ast.Assign)]
        if missing:
            raise EditRefused("the edit reaches outside its region")
        return
    if len(old) != len(new):
        raise EditRefused("the edit reaches outside its region")
    changed = [(a, b) for a, b in zip(old, new, strict=True) if ast.dump(a) != ast.dump(b)]
    for a, b in changed:
        if not (isinstance(a, ast.FunctionDef) and isinstance(b, ast.FunctionDef)):
            raise EditRefused("the edit reaches outside its region")
        head = (a.name, ast.dump(a.args), [ast.dump(d) for d in a.decorator_list])
        if head != (b.name, ast.dump(b.args), [ast.dump(d) for d in b.decorator_list]):
            raise EditRefused("the edit changes the signature of a function")
    if len(changed) > 1:
        raise EditRefused("the edit reaches outside its region")


def _moved(draft: Draft, edited: EditableRegion, count: int, text: str) -> Iterator[EditableRegion]:
    """The regions after `edited` got `count` lines. Holes in a rewritten body are regions while their mark stands."""
    grown = count - (edited.last - edited.first + 1)
    again = {r.name: r for r in draft_of(text, every_body=True).regions}
    for region in draft.regions:
        if region.name == edited.name:
            yield replace(region, last=region.first + count - 1)
        elif region.contains(edited) and region.name != HELPERS:
            yield replace(region, last=region.last + grown)
        elif edited.contains(region) and edited.name != HELPERS and region.name != HELPERS:
            if region.name in again:
                yield again[region.name]
        elif region.first > edited.last:
            yield replace(region, first=region.first + grown, last=region.last + grown)
        else:
            yield region


def _indentable(code: str, tree: ast.Module) -> list[str]:
    """The lines of a code. Raises EditRefused for a string over several lines, which indenting would change."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and (node.end_lineno or 0) > node.lineno:
            raise EditRefused("a string over several lines cannot stand in a region")
    return lines_of(code)


def _device_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Kernels and device functions: decorated by cute.kernel or cute.jit, but for the launch function."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(_decorator(d) in _DEVICE for d in node.decorator_list):
            launches = any(isinstance(n, ast.Attribute) and n.attr == "launch" for n in ast.walk(node))
            if not launches:
                yield node


def _decorator(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else ""


def _hole_statements(function: ast.FunctionDef) -> Iterator[tuple[int, ast.stmt]]:
    """(number of the first hole, the smallest statement around it), for each statement with one."""
    seen: set[int] = set()

    def visit(body: list[ast.stmt]) -> Iterator[tuple[int, ast.stmt]]:
        for statement in body:
            parts = [getattr(statement, f, None) for f in ("body", "orelse", "finalbody")]
            blocks = [p for p in parts if isinstance(p, list)]
            inner = {id(n) for b in blocks for s in b for n in ast.walk(s)}
            own = [n for n in ast.walk(statement) if id(n) not in inner]
            numbers = [n for node in own if (n := _hole_number(node))]
            if numbers and numbers[0] not in seen:
                seen.update(numbers)
                yield numbers[0], statement
            elif not numbers:
                for block in blocks:
                    yield from visit(block)

    yield from visit(function.body)


def _hole_number(node: ast.AST) -> int:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "hole" and node.args:
        value = node.args[0]
        return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else 0
    return 0


def _body_lines(function: ast.FunctionDef) -> tuple[int, int]:
    return _first_line(function.body[0]), function.end_lineno or function.lineno


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
