"""Source text to ParsedUnit: kernels, launches and diagnostics of one file, with no toolkit, compiler or GPU.

Includes that clang cannot find are looked up in the source's own tree, else replaced by empty files."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from porter import codes
from porter.frontend.launches.sites import find_launches
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import CursorKind
from porter.frontend.parse.declarations import is_kernel_definition, is_prelude, kernel_info, project_decls
from porter.frontend.parse.faults import NOT_FOUND, Reach, as_warning, errors_within, find_faults, is_refusal
from porter.frontend.parse.flags import with_flag_hint
from porter.frontend.parse.hermetic import VIRTUAL, ParseOptions, arguments, project_root
from porter.frontend.parse.includes import find_include, is_known, scan_includes
from porter.frontend.parse.lost_kernels import lost_kernels
from porter.frontend.parse.repairs import repairs
from porter.model import Diagnostic, KernelInfo, Launch, PorterError, Severity
from porter.source import Source, Span

__all__ = ["ParseOptions", "ParsedUnit", "is_prelude", "kernel_info", "parse_source", "project_decls"]

_MAX_ROUNDS = 8


@dataclass(frozen=True)
class ParsedUnit:
    """One parsed file. `tu` is clang's translation unit: only porter.frontend may look inside.

    `kernels` are the definitions in the file itself, `header_kernels` those in project headers that it includes.
    `stand_ins` maps the includes that clang could not find to the text used in their place.
    """

    source: Source
    options: ParseOptions
    tu: Any = field(repr=False, compare=False)
    kernels: tuple[KernelInfo, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    header_kernels: tuple[KernelInfo, ...] = ()
    stand_ins: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    files: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)  # project files, by name
    cursors: dict[Span, Any] = field(default_factory=dict, repr=False, compare=False)  # kernel definitions by span
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)  # what is costly to find twice

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """The launch sites of the file's host code (found on first use)."""
        return find_launches(self)

    def definition(self, kernel: KernelInfo) -> Any:
        """The cursor of a kernel's definition, a FUNCTION_TEMPLATE for a template. KeyError for a foreign kernel."""
        return self.cursors[kernel.span]

    def kernel(self, name: str) -> KernelInfo | None:
        """The kernel with this name, qualified or not; the file's own before those of its headers."""
        for k in (*self.kernels, *self.header_kernels):
            if name in (k.name, k.qualified_name):
                return k
        return None

    def text(self, cursor: Any) -> str:
        """Source text of a cursor's extent, from the file it stands in; "" when there is none."""
        start, end = cc.extent(cursor)
        if not start.file or start.file != end.file:
            return ""
        return self.bytes_of(start.file)[start.offset : end.offset].decode("utf-8", "replace")

    def bytes_of(self, name: str) -> bytes:
        """A file's content as clang saw it (offsets of cursors are in bytes)."""
        if name not in self.files:
            try:
                with open(name, "rb") as f:
                    self.files[name] = f.read()
            except OSError:
                self.files[name] = b""
        return self.files[name]


def parse_source(
    source: Source,
    options: ParseOptions = ParseOptions(),  # noqa: B008 (frozen)
    *,
    append: str = "",
    stand_ins: dict[str, str] | None = None,
    check: Collection[Span] | None = None,
) -> ParsedUnit:
    """Parse one file. `append` is C++ text added after it (the file on disk is not touched).

    `stand_ins` of an earlier unit of the same file saves the search for includes and repairs.
    `check` are the spans of the kernels
    whose errors are wanted (None: of all), which saves walking the others. Raises PorterError (PRT009) when
    libclang gives no AST at all; anything else is a diagnostic of the unit or of a kernel.
    """
    path = str(source.path)
    found = dict(stand_ins) if stand_ins is not None else scan_includes(source, options)
    for _ in range(_MAX_ROUNDS):
        text = found.get(path, source.text) + ("\n" + append if append else "")
        unsaved = [(path, text), *unsaved_files(found, path)]
        try:
            tu = cc.parse_file(path, arguments(options), unsaved)
        except cc.cindex.LibclangError as e:
            raise PorterError(Diagnostic(codes.PARSER_FAILED, str(e), help="pip install libclang-ng")) from e
        except cc.cindex.TranslationUnitLoadError as e:
            raise PorterError(
                Diagnostic(codes.PARSER_FAILED, f"libclang could not parse {path}: {e}", Span(path, 1))
            ) from e
        new: dict[str, str] = {}
        for d in tu.diagnostics:
            m = NOT_FOUND.search(d.spelling)
            if m and m.group(1) not in found:
                name = m.group(1)
                includer = d.location.file.name if d.location.file else path
                target = None if is_known(name) else find_include(name, includer, source)
                new[name] = f'#include "{target}"\n' if target else ""
        if not new:
            files = {os.path.abspath(n): body.encode() for n, body in unsaved}
            for name, fixed in repairs(tu.diagnostics, partial(_content, files)).items():
                body = fixed.decode("utf-8", "replace")
                if name != path:  # headers by absolute names: relative ones are those that includes are written with
                    new[os.path.abspath(name)] = body
                else:
                    new[name] = body[: len(body) - len(append) - 1] if append else body
        if not new:
            break
        found |= new
    return _build(source, options, tu, found, text, check)


def unsaved_files(stand_ins: dict[str, str], main: str) -> list[tuple[str, str]]:
    """(file name, text) that clang reads instead of the disk, the main file left out. Absolute: repaired files."""
    return [
        (name if os.path.isabs(name) else f"{VIRTUAL}/{name}", body) for name, body in stand_ins.items() if name != main
    ]


def _content(files: dict[str, bytes], name: str) -> bytes:
    name = os.path.abspath(name)
    if name not in files:
        try:
            with open(name, "rb") as f:
                files[name] = f.read()
        except OSError:
            files[name] = b""
    return files[name]


def skipped_lines(unit: ParsedUnit) -> list[tuple[int, int]]:
    """(first, last) lines of the source that #if leaves out under the unit's options; costs another parse."""
    return _skipped(unit.source, unit.options, unit.stand_ins)


def _skipped(source: Source, options: ParseOptions, stand_ins: dict[str, str]) -> list[tuple[int, int]]:
    path = str(source.path)
    unsaved = [(path, stand_ins.get(path, source.text)), *unsaved_files(stand_ins, path)]
    return cc.skipped_lines(cc.parse_file(path, arguments(options), unsaved, preprocessing_record=True), path)


def _line(kernel: KernelInfo) -> int:
    return kernel.span.line


def _missing(tu: Any, stand_ins: dict[str, str], files: dict[str, bytes]) -> dict[str, Span]:
    """Includes that an empty file stood in for though the prelude does not know them, with the place of the include."""
    missing: dict[str, Span] = {}
    for inclusion in tu.get_includes():
        name = inclusion.include.name
        if name.startswith(VIRTUAL):
            name = name.removeprefix(VIRTUAL + "/")
            if stand_ins.get(name) == "" and not is_known(name) and name not in missing:
                missing[name] = _include_line(inclusion.source.name, name, files)
    return missing


def _include_line(file: str, name: str, files: dict[str, bytes]) -> Span:
    """Where a file includes `name`. The binding's own location of an inclusion is not usable after the call."""
    if file not in files:
        try:
            with open(file, "rb") as f:
                files[file] = f.read()
        except OSError:
            return Span(file, 1)
    for number, line in enumerate(files[file].decode("utf-8", "replace").splitlines(), 1):
        if name in line and line.lstrip().startswith("#"):
            return Span(file, number, line.index(name))
    return Span(file, 1)


class FlagHints:
    """Adds the build flag that a fault is about, reading the project headers of the parse once."""

    def __init__(self, tu: Any, root: str, defines: tuple[str, ...]):
        self._tu, self._root = tu, root
        self._given = {d.split("=")[0] for d in defines}

    def __call__(self, d: Diagnostic) -> Diagnostic:
        return with_flag_hint(d, self._files, self._given)

    @cached_property
    def _files(self) -> list[tuple[str, str]]:
        names = {os.path.normpath(i.include.name): None for i in self._tu.get_includes()}
        found = []
        for name in names:
            if os.path.abspath(name).startswith(self._root) and os.path.isfile(name):
                with open(name, encoding="utf-8", errors="replace") as f:
                    found.append((name, f.read()))
        return found


def _build(
    source: Source,
    options: ParseOptions,
    tu: Any,
    stand_ins: dict[str, str],
    text: str,
    check: Collection[Span] | None,
) -> ParsedUnit:
    path = str(source.path)
    own: list[KernelInfo] = []
    other: list[KernelInfo] = []
    cursors: dict[Span, Any] = {}
    faults = find_faults(tu)
    refusals = [f for f in faults if is_refusal(f)]
    reach = Reach(tu, faults)
    root = str(project_root(source.path)) + os.sep
    claimed: set[Diagnostic] = set()
    hint = FlagHints(tu, root, options.defines)
    for c in project_decls(tu):
        if c.kind not in (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE) or not is_kernel_definition(c):
            continue
        info = kernel_info(c)
        if info.span in cursors:
            continue
        cursors[info.span] = c
        if check is not None and info.span not in check:
            (own if info.span.file == path else other).append(info)
            continue
        errors = errors_within(c, info.span, faults)
        errors += tuple(f for f in reach.faults_of(c, info.span) if f not in errors)
        if errors:  # an #error before says more of what is wrong than what follows from it
            errors = tuple(dict.fromkeys((*refusals, *errors)))
        claimed.update(errors)
        info = replace(info, errors=tuple(hint(e) for e in errors))
        if info.span.file == path:
            own.append(info)
        elif os.path.abspath(info.span.file).startswith(root):
            other.append(info)
    if check is None and (lost := lost_kernels(path, text, cursors, (), faults)):
        lost = lost_kernels(path, text, cursors, _skipped(source, options, stand_ins), faults)
        claimed.update(e for k in lost for e in k.errors)
        own = sorted([*own, *(replace(k, errors=tuple(hint(e) for e in k.errors)) for k in lost)], key=_line)
    files = {name: body.encode() for name, body in unsaved_files(stand_ins, path) if not name.startswith(VIRTUAL)}
    unit = ParsedUnit(
        source, options, tu, tuple(own), (), tuple(other), stand_ins, {**files, path: text.encode()}, cursors
    )
    severity = Severity.ERROR if any(k.errors for k in own) else Severity.WARNING
    diagnostics = [
        Diagnostic(
            codes.INCLUDE_NOT_FOUND,
            f"include '{name}' was not found",
            place,
            severity,
            "name its folder with -I; kernels that do not need it are not affected",
        )
        for name, place in _missing(tu, stand_ins, unit.files).items()
    ]
    diagnostics += [as_warning(f) for f in (*refusals, *faults) if f not in claimed]
    diagnostics = list(dict.fromkeys(diagnostics))
    return replace(unit, diagnostics=tuple(diagnostics))
