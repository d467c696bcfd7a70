"""The device side of a file: what the kernels need and nothing else, for a compiler that has no host headers (NVRTC).

Line numbers stay: what is left out is blanked. A declaration is kept when a kept one mentions its name; host-only
functions never are. Conditional directives are resolved as clang saw them, so another compiler sees the same code.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.hermetic import HEADERS, VIRTUAL, arguments
from porter.frontend.parse.source import ParsedUnit, unsaved_files
from porter.frontend.slice.text import Directive, blank, code_of, directives, identifiers
from porter.plain_files import read_plain

_FUNCTIONS = {
    CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR,
    CursorKind.DESTRUCTOR, CursorKind.CONVERSION_FUNCTION,
}  # fmt: skip
_CLASSES = {
    CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL, CursorKind.UNION_DECL, CursorKind.CLASS_TEMPLATE,
    CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
}  # fmt: skip
_OPEN = {CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC}
_DEVICE = {CursorKind.CUDADEVICE_ATTR, CursorKind.CUDAGLOBAL_ATTR}
_LEAD = re.compile(  # specifiers that clang leaves out of a declaration's extent
    r"(?:(?:extern[ \t]+\"C\"|template\s*<\s*>|\[\[[^\]\n]*\]\]|(?:__launch_bounds__|__attribute__|__align__|alignas"
    r"|__cluster_dims__|__maxnreg__)\s*\((?:[^()]|\([^()]*\))*\)|[A-Za-z_]\w*)\s+)+$"
)


@dataclass
class Item:
    """One declaration (or several that share text) at namespace scope, or a member function of a kept class."""

    file: str
    start: int
    end: int
    line: int
    end_line: int
    names: set[str]
    code: str = field(repr=False)
    host: bool = False
    operator: bool = False
    is_class: bool = False
    members: list[Item] = field(default_factory=list, repr=False)

    @property
    def key(self) -> tuple[str, int]:
        return (self.file, self.start)


@dataclass(frozen=True)
class SliceFile:
    """One file of a slice: `text` has the lines of the original at the same numbers."""

    path: str
    text: str = field(repr=False)


@dataclass(frozen=True)
class Slice:
    """A sliced translation unit. files[0] is the main file; the others are included by `include_name(n)`.

    `outside` are the other includes that are kept; `code` is the kept code in one piece, macros that it uses
    included and comments and strings left out; `names` its identifiers.
    """

    files: tuple[SliceFile, ...]
    outside: tuple[str, ...]
    code: str = field(repr=False)
    names: frozenset[str] = field(repr=False)
    items: tuple[Item, ...] = field(repr=False)

    def item_at(self, path: str, line: int) -> Item | None:
        """The innermost kept declaration that covers a line."""
        for item in self.items:
            if item.file == path and item.line <= line <= item.end_line:
                return next((m for m in item.members if m.line <= line <= m.end_line), item)
        return None


def include_name(n: int) -> str:
    return f"porter_slice_{n}.h"


class SliceUnit:
    """All declarations of a parsed file and of the project headers it includes; `cut` makes slices of it."""

    def __init__(self, unit: ParsedUnit):
        self.unit = unit
        self.main = str(unit.source.path)
        text = unit.stand_ins.get(self.main, unit.source.text)
        self._texts: dict[str, str] = {self.main: text.encode().decode("latin-1")}
        self._code: dict[str, str] = {}
        self._directives: dict[str, list[Directive]] = {}
        tu = _parse_recorded(unit)
        self._files = self._project_files(tu)
        self._skipped = {path: _skipped_ranges(tu, file) for path, file in self._files.items()}
        self._frames: dict[str, list[tuple[int, int]]] = {path: [] for path in self._files}
        self.items: list[Item] = []
        self._collect(tu.cursor)
        self._merge()

    # ------------------------------------------------------------ files

    def _project_files(self, tu: Any) -> dict[str, Any]:
        found = {self.main: tu.get_file(self.main)}
        for inclusion in tu.get_includes():
            name = inclusion.include.name
            ours = name.startswith((str(HEADERS), VIRTUAL)) or self.unit.stand_ins.get(os.path.abspath(name)) == ""
            if not ours:
                found.setdefault(name, inclusion.include)
        return found

    def text(self, path: str) -> str:
        if path not in self._texts:
            repaired = self.unit.stand_ins.get(path)
            try:
                self._texts[path] = (repaired.encode() if repaired else read_plain(path)).decode("latin-1")
            except OSError:  # a folder, say, which clang passes over
                self._texts[path] = ""
        return self._texts[path]

    def code(self, path: str) -> str:
        if path not in self._code:
            self._code[path] = code_of(self.text(path))
        return self._code[path]

    def directives(self, path: str) -> list[Directive]:
        """The active directives of a file."""
        return [d for d in self._every_directive(path) if not _within(d.start, self._skipped[path])]

    def _every_directive(self, path: str) -> list[Directive]:
        if path not in self._directives:
            self._directives[path] = directives(self.text(path), self.code(path))
        return self._directives[path]

    def _resolve(self, directive: Directive, path: str) -> str | None:
        """The project file an include means, or None when it is not one."""
        name = directive.include
        folders = [os.path.dirname(path)] if directive.quoted else []
        stand_in = re.search(r'#include "([^"]+)"', self.unit.stand_ins.get(name, ""))
        candidates = [os.path.join(f, name) for f in [*folders, *self.unit.options.include_dirs]]
        candidates += [stand_in.group(1)] if stand_in else []
        real = {os.path.realpath(f): f for f in self._files}
        return next((real[r] for c in candidates if (r := os.path.realpath(c)) in real), None)

    # ------------------------------------------------------------ declarations

    def _collect(self, parent: Cursor) -> None:
        for c in parent.get_children():
            start, end = c.extent.start, c.extent.end
            path = start.file.name if start.file else ""
            if c.kind.is_preprocessing() or path not in self._files or end.file is None or end.file.name != path:
                continue
            is_open = c.kind in _OPEN or (c.kind is CursorKind.UNEXPOSED_DECL and self._is_extern_c(path, start.offset))
            if not is_open:
                self._add(c, path)
            elif c.kind is CursorKind.NAMESPACE or self._brace_first(path, start.offset):
                self._frame(path, start.offset, end.offset)
                self._collect(c)
            else:
                self._collect(c)

    def _is_extern_c(self, path: str, at: int) -> bool:
        return self.text(path)[at:].startswith("extern")

    def _brace_first(self, path: str, at: int) -> bool:
        return bool(re.match(r'extern\s*"C(?:\+\+)?"\s*\{', self.text(path)[at:]))

    def _frame(self, path: str, start: int, end: int) -> None:
        """Keep `namespace x {` and its `}` (or the macros that stand for them)."""
        text, code = self.text(path), self.code(path)
        if re.match(r"(inline\s+)?namespace\b|extern\b|::|[A-Za-z_]\w*\s*(::|\{)", code[start:]) or text[start] == '"':
            brace = code.find("{", start)
            self._frames[path].append((start, brace + 1))
        else:
            macro = re.match(r"\w+\s*(\([^()]*\))?", code[start:])
            self._frames[path].append((start, start + (macro.end() if macro else 1)))
        if code[end - 1 : end] == "}":
            self._frames[path].append((end - 1, end))
        else:
            macro = re.search(r"\w+\s*(\([^()]*\))?$", code[:end])
            self._frames[path].append((macro.start() if macro else end - 1, end))

    def _add(self, c: Cursor, path: str) -> None:
        if c.kind is CursorKind.STATIC_ASSERT:
            return
        item = self._item(c, path)
        if item.code.strip(" \n;"):
            self.items.append(item)

    def _item(self, c: Cursor, path: str) -> Item:
        code = self.code(path)
        start, end = c.extent.start.offset, c.extent.end.offset
        lead = _LEAD.search(code[max(0, start - 400) : start])
        if lead:
            start = self._without_directives(path, start - len(lead.group()), start)
        semicolon = re.match(r"\s*;", code[end:])
        end += semicolon.end() if semicolon else 0
        names = {c.spelling}
        if c.kind is CursorKind.ENUM_DECL:
            names |= {k.spelling for k in c.get_children() if k.kind is CursorKind.ENUM_CONSTANT_DECL}
        parent = c.semantic_parent
        if c.kind in _FUNCTIONS | {CursorKind.VAR_DECL} and parent is not None and parent.kind in _CLASSES:
            names = {parent.spelling}  # a member defined outside its class
        if c.kind is CursorKind.USING_DECLARATION:
            names = {re.sub(r".*::", "", code[start:end].strip(" ;\n")).strip()}
        if c.kind is CursorKind.USING_DIRECTIVE:
            names = {"using namespace"}
        item = Item(
            path, start, end, _line(code, start), _line(code, end), names, code[start:end],
            host=c.kind in _FUNCTIONS and _is_host_only(c, code[start:end]),
            operator=c.spelling.startswith("operator") and c.kind in _FUNCTIONS,
            is_class=c.kind in _CLASSES,
        )  # fmt: skip
        if c.kind in _CLASSES:
            self._members(c, item)
        return item

    def _without_directives(self, path: str, start: int, end: int) -> int:
        """`start` moved past the last directive line before `end`."""
        return max([start, *(d.end for d in self._every_directive(path) if start < d.end <= end)])

    def _members(self, c: Cursor, item: Item) -> None:
        for m in c.get_children():
            if m.kind in _CLASSES:
                self._members(m, item)
            elif m.kind in _FUNCTIONS and m.extent.start.file and m.extent.start.file.name == item.file:
                start, end = m.extent.start.offset, m.extent.end.offset
                code = self.code(item.file)
                name = re.sub(r"<.*", "", m.spelling)
                if not name.startswith("operator") and name.lstrip("~") not in code[start:end]:
                    continue  # made by a macro: its text is not its own
                lead = re.search(r"(?:\b(?!public|private|protected)[A-Za-z_]\w*[ \t]+)+$", code[:start][-120:])
                start -= len(lead.group()) if lead else 0
                semicolon = re.match(r"\s*;", code[end:])
                end += semicolon.end() if semicolon else 0
                host = _is_host_only(m, code[start:end]) and "{" in code[start:end]
                item.members.append(
                    Item(
                        item.file, start, end, _line(code, start), _line(code, end), {m.spelling}, code[start:end], host
                    )
                )

    def _merge(self) -> None:
        """Make one item of declarations that share text (`typedef struct {} X;`, `int a, b;`, one macro for two)."""
        self.items.sort(key=lambda i: (i.file, i.start, -i.end))
        merged: list[Item] = []
        for item in self.items:
            last = merged[-1] if merged else None
            if last and last.file == item.file and item.start < last.end:
                last.names |= item.names
                last.members += item.members
                last.host = last.host and item.host
                last.is_class = last.is_class or item.is_class
                if item.end > last.end:
                    last.end, last.end_line = item.end, item.end_line
                    last.code = self.code(last.file)[last.start : last.end]
            else:
                merged.append(item)
        self.items = merged

    # ------------------------------------------------------------ cutting

    def cut(
        self,
        roots: Iterable[str],
        outside: Callable[[str, str], str],
        drop: frozenset[tuple[str, int]] = frozenset(),
    ) -> Slice:
        """The slice that declares what `roots` (identifiers) need.

        `outside(include, code)` gives the line for an include that is no project file ("" leaves it out), `code` being
        the slice's. `drop` are keys of items to leave out although something mentions them.
        """
        names, kept, macros = self._closure(set(roots), drop)
        code = "\n".join([*(self._kept_code(i, drop) for i in kept), *macros])
        order = [self.main, *(f for f in self.unit.options.pre_include if f in self._files)]
        texts: dict[str, str] = {}
        seen_outside: list[str] = []
        for path in order:  # grows while the includes are followed
            here = [i for i in kept if i.file == path]
            texts[path] = self._cut_file(path, here, order, lambda name: outside(name, code), seen_outside, drop)
        files = tuple(SliceFile(path, texts[path].encode("latin-1").decode("utf-8", "replace")) for path in order)
        return Slice(files, tuple(seen_outside), code, frozenset(names), tuple(kept))

    def _closure(self, names: set[str], drop: frozenset[tuple[str, int]]) -> tuple[set[str], list[Item], list[str]]:
        macros: dict[str, str] = {}
        for path in self._files:
            for d in self.directives(path):
                if d.macro:
                    macros[d.macro] = macros.get(d.macro, "") + "\n" + self.code(path)[d.start : d.end]
        usable = [i for i in self.items if not i.host and i.key not in drop]
        classes = {n for i in usable if i.is_class for n in i.names}
        by_name: dict[str, list[Item]] = {}
        for item in usable:
            for name in item.names:
                by_name.setdefault(name, []).append(item)
        namespaces = {n for f in self._frames for s, e in self._frames[f] for n in identifiers(self.code(f)[s:e])}
        kept: dict[tuple[str, int], Item] = {}
        todo = list(names)
        names = set()

        def reach(found: Iterable[str]) -> None:
            todo.extend(n for n in found if n not in names)

        while todo:
            name = todo.pop()
            if name not in names:
                names.add(name)
                reach(identifiers(macros.get(name, "")))
                for item in by_name.get(name, ()):
                    if item.key not in kept:
                        kept[item.key] = item
                        reach(identifiers(self._kept_code(item, drop)))
            if todo:
                continue
            for item in usable:  # nobody names an operator: it goes with the types it works on
                if item.operator and item.key not in kept:
                    mentioned = identifiers(item.code.split("{")[0]) & classes
                    if mentioned <= names:
                        kept[item.key] = item
                        reach(identifiers(item.code))
        for item in usable:
            if "using namespace" in item.names:
                target = identifiers(item.code) - {"using", "namespace"}
                if target <= namespaces | _OUTSIDE_NAMESPACES:
                    kept[item.key] = item
        used = [text for name, text in macros.items() if name in names]
        return names, sorted(kept.values(), key=lambda i: i.key), used

    def _kept_code(self, item: Item, drop: frozenset[tuple[str, int]]) -> str:
        code = item.code
        for m in item.members:
            if m.host or m.key in drop:
                at, to = m.start - item.start, m.end - item.start
                code = code[:at] + blank(code[at:to]) + code[to:]
        return code

    def _cut_file(
        self,
        path: str,
        kept: list[Item],
        order: list[str],
        outside: Callable[[str], str],
        seen_outside: list[str],
        drop: frozenset[tuple[str, int]],
    ) -> str:
        text = self.text(path)
        keep = bytearray(len(text))
        for start, end in self._frames[path]:
            keep[start:end] = b"\1" * (end - start)
        for item in kept:
            keep[item.start : item.end] = b"\1" * (item.end - item.start)
            for m in item.members:
                if m.host or m.key in drop:
                    keep[m.start : m.end] = bytes(m.end - m.start)
        lines: dict[int, str] = {}
        for d in self.directives(path):
            keep[d.start : d.end] = bytes(d.end - d.start)
            if d.word in ("define", "undef") or (d.word == "pragma" and "once" not in text[d.start : d.end]):
                keep[d.start : d.end] = b"\1" * (d.end - d.start)
            elif d.include:
                target = self._resolve(d, path)
                if target is None:
                    lines[d.start] = outside(d.include)
                    seen_outside += [d.include] if lines[d.start] else []
                elif target != self.main:
                    if target not in order:
                        order.append(target)
                    lines[d.start] = f'#include "{include_name(order.index(target))}"'
        for start, end in self._skipped[path]:
            keep[start:end] = bytes(end - start)
        for d in self._every_directive(path):
            if d.word in _CONDITIONALS:  # a skipped range may end in the middle of an #elif
                keep[d.start : d.end] = bytes(d.end - d.start)
        out = [t if k or t == "\n" else " " for t, k in zip(text, keep, strict=True)]
        for at, line in lines.items():
            out[at] = line if out[at] == " " else line + out[at]
        return re.sub(r"[ \t]+$", "", "".join(out), flags=re.MULTILINE)


_CONDITIONALS = {"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"}
# Namespaces that the oracle's own headers give.
_OUTSIDE_NAMESPACES = {
    "std",
    "cub",
    "cuda",
    "cooperative_groups",
    "nvcuda",
    "wmma",
    "experimental",
    "at",
    "c10",
    "torch",
}


def _is_host_only(c: Cursor, code: str) -> bool:
    kinds = {k.kind for k in c.get_children()}
    if kinds & _DEVICE:
        return False
    head = re.split(r"[{]", code, maxsplit=1)[0]
    if re.search(r"=\s*(default|delete)\s*;?\s*$", code.strip()):
        return False
    return not re.search(r"\bconst(?:expr|eval)\b", head)


def _line(code: str, offset: int) -> int:
    return code.count("\n", 0, offset) + 1


def _within(offset: int, ranges: list[tuple[int, int]]) -> bool:
    return any(start <= offset < end for start, end in ranges)


# ---------------------------------------------------------------- clang with a preprocessing record


class _Ranges(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint), ("ranges", ctypes.POINTER(cc.cindex.SourceRange)))


def _parse_recorded(unit: ParsedUnit) -> Any:
    """The unit parsed again with the record of skipped preprocessor regions that libclang keeps only on demand."""
    path = str(unit.source.path)
    unsaved = [(path, unit.stand_ins.get(path, unit.source.text)), *unsaved_files(unit.stand_ins, path)]
    index = cc.cindex.Index.create()
    return index.parse(path, arguments(unit.options), unsaved, options=cc.KEEP_GOING | 0x1)


def _skipped_ranges(tu: Any, file: Any) -> list[tuple[int, int]]:
    """Byte ranges of a file that the preprocessor left out, each from the directive that began it to its end."""
    lib = cc.cindex.conf.lib
    get = ctypes.cast(
        lib.clang_getSkippedRanges,
        ctypes.CFUNCTYPE(ctypes.POINTER(_Ranges), cc.TranslationUnit, cc.cindex.File),
    )
    dispose = ctypes.cast(lib.clang_disposeSourceRangeList, ctypes.CFUNCTYPE(None, ctypes.POINTER(_Ranges)))
    found = get(tu, file)
    try:
        count = found.contents.count
        return [(found.contents.ranges[i].start.offset, found.contents.ranges[i].end.offset) for i in range(count)]
    finally:
        dispose(found)
