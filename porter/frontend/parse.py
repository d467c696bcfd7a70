"""Source text to ParsedUnit: kernels, launches and diagnostics of one file, with no toolkit, compiler or GPU.

Includes that clang cannot find are looked up in the source's own tree, else replaced by empty files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from porter.frontend import clang_compat as cc
from porter.frontend import codes
from porter.frontend.clang_compat import Cursor, CursorKind
from porter.frontend.hermetic import HEADERS, VIRTUAL, ParseOptions, arguments, find_include, is_known, project_root
from porter.model import Diagnostic, KernelInfo, KernelParam, Launch, PorterError, Severity, TemplateParam
from porter.source import NO_SPAN, Source, Span

__all__ = ["ParseOptions", "ParsedUnit", "is_prelude", "kernel_info", "parse_source", "project_decls"]

_MAX_ROUNDS = 8
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)
_NOT_FOUND = re.compile(r"'([^']+)' file not found")
_PRELUDE_PREFIX = str(HEADERS) + os.sep

# What nvcc accepts and clang does not; the AST is whole in every case.
_TOLERATED = re.compile(
    r"default initialization of an object of const type"
    r"|reference to __host__ variable"
    r"|non-constant-expression cannot be narrowed|cannot be narrowed"
    r"|'main' is not allowed|__global__ function call is not configured"
    r"|does not declare anything|exception specification in declaration"
    r"|dynamic initialization is not supported for __"
)


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
    launches: tuple[Launch, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    header_kernels: tuple[KernelInfo, ...] = ()
    stand_ins: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    files: dict[str, str] = field(default_factory=dict, repr=False, compare=False)  # text of project files, by name
    cursors: dict[Span, Any] = field(default_factory=dict, repr=False, compare=False)  # kernel definitions by span

    def definition(self, kernel: KernelInfo) -> Any:
        """The cursor of a kernel's definition (a FUNCTION_TEMPLATE when it is a template). KeyError for a foreign kernel."""
        return self.cursors[kernel.span]

    def kernel(self, name: str) -> KernelInfo | None:
        """The kernel with this name, qualified or not; the file's own before those of its headers."""
        for k in (*self.kernels, *self.header_kernels):
            if name in (k.name, k.qualified_name):
                return k
        return None

    def text(self, cursor: Any) -> str:
        """Source text of a cursor's extent, from the file it stands in."""
        return cc.extent_text(cursor, _FileTexts(self))


class _FileTexts(dict[str, str]):
    """Texts by file name, read on first use."""

    def __init__(self, unit: ParsedUnit):
        super().__init__(unit.files)
        self._shared = unit.files

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name) and isinstance(name, str):
            try:
                with open(name, encoding="utf-8", errors="replace") as f:
                    self[name] = self._shared[name] = f.read()
            except OSError:
                return False
        return super().__contains__(name)


def is_prelude(cursor: Cursor) -> bool:
    """True for what porter's own headers (or the compiler) declare and the user's sources do not define."""
    definition = cursor.get_definition()
    place = (definition or cursor).location.file
    return place is None or place.name.startswith(_PRELUDE_PREFIX)


def parse_source(
    source: Source, options: ParseOptions = ParseOptions(), *, append: str = "", stand_ins: dict[str, str] | None = None
) -> ParsedUnit:
    """Parse one file. `append` is C++ text added after it (the file on disk is not touched).

    `stand_ins` of an earlier unit of the same file saves the search for includes. Raises PorterError (PRT009) when
    libclang gives no AST at all; anything else is a diagnostic of the unit or of a kernel.
    """
    path = str(source.path)
    text = source.text + ("\n" + append if append else "")
    found = dict(stand_ins) if stand_ins else {}
    for name in _INCLUDE.findall(source.text):
        if is_known(name) and not _given(name, options):
            found.setdefault(name, "")
    missing: dict[str, Span] = {}
    for _ in range(_MAX_ROUNDS):
        unsaved = [(path, text), *((f"{VIRTUAL}/{name}", body) for name, body in found.items())]
        try:
            tu = cc.parse_file(path, arguments(options), unsaved)
        except cc.cindex.TranslationUnitLoadError as e:
            raise PorterError(
                Diagnostic(codes.NO_LIBCLANG, f"libclang could not parse {path}: {e}", Span(path, 1))
            ) from e
        new = {}
        for d in tu.diagnostics:
            m = _NOT_FOUND.search(d.spelling)
            if m and m.group(1) not in found:
                includer = d.location.file.name if d.location.file else path
                target = None if is_known(m.group(1)) else find_include(m.group(1), includer, source)
                new[m.group(1)] = f'#include "{target}"\n' if target else ""
                if not target and not is_known(m.group(1)):
                    missing[m.group(1)] = _place(d)
        if not new:
            break
        found |= new
    return _build(source, options, tu, found, missing)


def _given(name: str, options: ParseOptions) -> bool:
    return any(os.path.isfile(os.path.join(d, name)) for d in options.include_dirs)


def _place(d: Any) -> Span:
    loc = d.location
    return Span(loc.file.name, loc.line, loc.column) if loc.file else NO_SPAN


def _build(
    source: Source, options: ParseOptions, tu: Any, stand_ins: dict[str, str], missing: dict[str, Span]
) -> ParsedUnit:
    from porter.frontend.launches import find_launches

    path = str(source.path)
    own: list[KernelInfo] = []
    other: list[KernelInfo] = []
    cursors: dict[Span, Any] = {}
    faults = _faults(tu)
    root = str(project_root(source.path))
    for c in project_decls(tu):
        if c.kind not in (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE) or not _is_kernel_definition(c):
            continue
        info = kernel_info(c)
        if info.span in cursors:
            continue
        cursors[info.span] = c
        info = replace(info, errors=_errors_within(c, info.span, faults))
        if info.span.file == path:
            own.append(info)
        elif os.path.abspath(info.span.file).startswith(root):
            other.append(info)
    unit = ParsedUnit(source, options, tu, tuple(own), (), (), tuple(other), stand_ins, {path: source.text}, cursors)
    claimed = {e.span for k in (*own, *other) for e in k.errors}
    severity = Severity.ERROR if any(k.errors for k in own) else Severity.WARNING
    diagnostics = [
        Diagnostic(
            codes.MISSING_INCLUDE,
            f"include '{name}' was not found",
            place,
            severity,
            "name its folder with -I; kernels that do not need it are not affected",
        )
        for name, place in missing.items()
    ]
    diagnostics += [f for f in faults if f.span not in claimed]
    return replace(unit, launches=find_launches(unit), diagnostics=tuple(diagnostics))


def _faults(tu: Any) -> list[Diagnostic]:
    """clang's errors as diagnostics (missing includes and what nvcc accepts left out), one per place and message."""
    found: dict[tuple[Span, str], Diagnostic] = {}
    for d in tu.diagnostics:
        if d.severity < 3 or _NOT_FOUND.search(d.spelling) or _TOLERATED.search(d.spelling):
            continue
        notes = tuple(f"{_place(n)}: {n.spelling}" for n in d.children)
        place = _place(d)
        found.setdefault(
            (place, d.spelling),
            Diagnostic(
                codes.PARSE_ERROR,
                d.spelling,
                place,
                help="if the name comes from a header or a build flag, give -I or -D",
                notes=notes[:6],
            ),
        )
    return list(found.values())


def _errors_within(cursor: Cursor, where: Span, faults: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    errors = [f for f in faults if _inside(f.span, where)]
    if not errors:
        for c in cc.walk(cursor):
            if cc.is_invalid(c) and c.kind not in _UNTYPED_BY_NATURE:
                name = f" '{c.spelling}'" if c.spelling else ""
                errors.append(Diagnostic(codes.UNTYPED, f"expression{name} has no type", cc.span(c)))
                break
    return tuple(errors)


_UNTYPED_BY_NATURE = frozenset(
    (
        CursorKind.STRING_LITERAL,
        CursorKind.OVERLOADED_DECL_REF,
        CursorKind.PACK_EXPANSION_EXPR,
        CursorKind.SIZE_OF_PACK_EXPR,
        CursorKind.INIT_LIST_EXPR,
    )
)


def _inside(place: Span, where: Span) -> bool:
    return place.file == where.file and (where.line, where.col) <= (place.line, place.col) <= (
        where.end_line,
        where.end_col,
    )


# ---------------------------------------------------------------- declarations

_CONTAINERS = (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL)


def project_decls(tu: Any) -> Iterator[Cursor]:
    """Namespace-scope declarations that are not porter's own, namespaces opened."""

    def visit(c: Cursor) -> Iterator[Cursor]:
        for child in c.get_children():
            if child.kind in _CONTAINERS:
                yield from visit(child)
            else:
                yield child

    for c in tu.cursor.get_children():
        place = c.location.file
        if place is None or place.name.startswith(_PRELUDE_PREFIX):
            continue
        if c.kind in _CONTAINERS:
            yield from visit(c)
        else:
            yield c


def _is_kernel_definition(c: Cursor) -> bool:
    kinds = {child.kind for child in c.get_children()}
    return CursorKind.CUDAGLOBAL_ATTR in kinds and CursorKind.COMPOUND_STMT in kinds


def qualified_name(c: Cursor) -> str:
    """`a::b::name`, anonymous namespaces left out."""
    parts = [c.spelling]
    p = c.semantic_parent
    while p is not None and p.kind != CursorKind.TRANSLATION_UNIT:
        if p.kind in (CursorKind.NAMESPACE, CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL) and p.spelling:
            if not p.is_anonymous():
                parts.append(p.spelling)
        p = p.semantic_parent
    return "::".join(reversed(parts))


def template_params(c: Cursor) -> tuple[TemplateParam, ...]:
    """The template parameters of a FUNCTION_TEMPLATE, in order. A pack's name ends with "..."."""
    kinds = {
        CursorKind.TEMPLATE_TYPE_PARAMETER: "type",
        CursorKind.TEMPLATE_NON_TYPE_PARAMETER: "value",
        CursorKind.TEMPLATE_TEMPLATE_PARAMETER: "template",
    }
    params = []
    for child in c.get_children():
        kind = kinds.get(child.kind)
        if kind is None:
            continue
        tokens = cc.token_spellings(child)
        default = " ".join(tokens[tokens.index("=") + 1 :]) if "=" in tokens else ""
        pack = "..." if "..." in tokens else ""
        value_type = child.type.spelling if kind == "value" else ""
        params.append(TemplateParam(child.spelling + pack, kind, value_type, default))
    return tuple(params)


def kernel_info(c: Cursor) -> KernelInfo:
    """What a person needs to know of a kernel definition (errors not filled in)."""
    params = [KernelParam(p.spelling, p.type.spelling) for p in c.get_children() if p.kind == CursorKind.PARM_DECL]
    bounds = ""
    for child in c.get_children():
        if child.kind == CursorKind.ANNOTATE_ATTR and child.spelling.startswith("launch_bounds:"):
            bounds = child.spelling.removeprefix("launch_bounds:")
    return KernelInfo(
        name=c.spelling,
        qualified_name=qualified_name(c),
        params=tuple(params),
        template_params=template_params(c) if c.kind == CursorKind.FUNCTION_TEMPLATE else (),
        span=cc.span(c),
        launch_bounds=bounds,
    )
