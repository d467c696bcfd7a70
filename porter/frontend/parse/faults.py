"""clang's errors as porter diagnostics, and which of them concern which kernel: those in its own text and in the
project functions that it reaches."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from porter import codes
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.declarations import may_run_on_device, project_decls
from porter.model import Diagnostic, Severity
from porter.source import NO_SPAN, Span

NOT_FOUND = re.compile(r"'([^']+)' file not found")

# What nvcc accepts and clang does not; the AST is whole in every case.
_TOLERATED = re.compile(
    r"default initialization of an object of const type"
    r"|reference to __host__ variable"
    r"|reference to __host__ function"
    r"|cannot be narrowed"
    r"|__global__ function call is not configured"
    r"|does not declare anything|exception specification in declaration"
    r"|dynamic initialization is not supported for __"
    r"|missing 'template' keyword prior to dependent template name"
    r"|default arguments cannot be added to a function template"
    r"|expected a for, while, or do-while loop to follow"
    r"|typedef redefinition with different types \('__half2?' vs"
)

_UNTYPED_BY_NATURE = frozenset(
    (
        CursorKind.STRING_LITERAL,
        CursorKind.OVERLOADED_DECL_REF,
        CursorKind.PACK_EXPANSION_EXPR,
        CursorKind.SIZE_OF_PACK_EXPR,
        CursorKind.INIT_LIST_EXPR,
    )
)


_REFUSED = "#error: "
_REFUSED_HELP = "the source asks for other flags of the build: give them with -D, -std or --arch"


def is_refusal(d: Diagnostic) -> bool:
    """True for an `#error` that the preprocessor came to."""
    return d.message.startswith(_REFUSED)


def is_tolerated(message: str) -> bool:
    """True for an error of clang that nvcc does not make."""
    return bool(NOT_FOUND.search(message) or _TOLERATED.search(message))


def place_of(d: Any) -> Span:
    """Where a clang diagnostic (or anything with a location) stands."""
    p = cc.place(d.location)
    return Span(p.file, p.line, p.col) if p.file else NO_SPAN


def find_faults(tu: Any) -> list[Diagnostic]:
    """clang's errors (missing includes and what nvcc accepts left out), one per place and message."""
    found: dict[tuple[Span, str], Diagnostic] = {}
    for d in tu.diagnostics:
        if d.severity < 3 or is_tolerated(d.spelling):
            continue
        notes = tuple(
            f"{place_of(n)}: {n.spelling}" for n in d.children if not n.spelling.startswith("in file included")
        )
        place = place_of(d)
        refused = d.category_name == "User-Defined Issue"
        found.setdefault(
            (place, d.spelling),
            Diagnostic(
                codes.PARSE_ERROR,
                _REFUSED + d.spelling.strip('"') if refused else d.spelling,
                place,
                help=_REFUSED_HELP if refused else "if the name comes from a header or a build flag, give -I or -D",
                notes=notes[:6],
            ),
        )
    return list(found.values())


def inside(place: Span, where: Span) -> bool:
    """True when the start of `place` lies in `where`."""
    return place.file == where.file and (where.line, where.col) <= (place.line, place.col) <= (
        where.end_line,
        where.end_col,
    )


def errors_within(cursor: Cursor, where: Span, faults: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The faults in a kernel's text; when there are none, its first expression that clang could not type."""
    errors = [f for f in faults if inside(f.span, where)]
    if not errors:
        for c in cc.walk(cursor):
            if cc.is_invalid(c) and c.kind not in _UNTYPED_BY_NATURE and not _is_argument_list(c):
                name = f" '{c.spelling}'" if c.spelling else ""
                errors.append(Diagnostic(codes.UNTYPED_EXPRESSION, f"expression{name} has no type", cc.span(c)))
                break
    return tuple(errors)


def _is_argument_list(c: Cursor) -> bool:
    """`(a, b)` of a declaration whose type depends on a template parameter: untyped until instantiated."""
    return c.kind == CursorKind.UNEXPOSED_EXPR and next(iter(cc.token_spellings(c)), "") == "("


def faulty_specialisations(tu: Any, faults: list[Diagnostic]) -> dict[Span, tuple[Diagnostic, ...]]:
    """The faults in explicit specialisations of function templates (`template <> T cast<T, U>(U x) {...}`), by their
    extents. Which of them a kernel calls is known of its instances only."""
    found = {}
    for c in project_decls(tu) if faults else ():
        if is_specialisation(c):
            where = cc.span(c)
            inner = tuple(f for f in faults if inside(f.span, where))
            if inner:
                found[where] = inner
    return found


def is_specialisation(c: Cursor) -> bool:
    """True for an explicit specialisation of a function template."""
    return c.kind == CursorKind.FUNCTION_DECL and cc.specialised_template(c) is not None


class Reach:
    """Which project functions a kernel may call, by name: an overestimate, since templates hide the overload. Explicit
    specialisations are left to `faulty_specialisations`."""

    def __init__(self, tu: Any, faults: list[Diagnostic]):
        self._tu, self._faults = tu, faults
        self._names: dict[Span, set[str]] = {}
        self._on_device: dict[str, list[tuple[Cursor, Span]]] = {}

    @cached_property
    def _functions(self) -> dict[str, list[Cursor]]:
        """All functions with a body by name. Which may run on the device is asked of those that are called: the answer
        takes a look at every token."""
        found: dict[str, list[Cursor]] = {}
        for c in project_decls(self._tu):
            self._add(c, found)
        return found

    def _callable(self, name: str) -> list[tuple[Cursor, Span]]:
        if name not in self._on_device:
            places = [(c, cc.span(c)) for c in self._functions.get(name, ())]
            self._on_device[name] = [(c, where) for c, where in places if where.end_line and may_run_on_device(c)]
        return self._on_device[name]

    def _add(self, c: Cursor, found: dict[str, list[Cursor]]) -> None:
        if is_specialisation(c):
            return
        if c.kind in (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD):
            found.setdefault(c.spelling, []).append(c)
        elif c.kind in (
            CursorKind.STRUCT_DECL,
            CursorKind.CLASS_DECL,
            CursorKind.CLASS_TEMPLATE,
            CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
        ):
            for child in c.get_children():
                self._add(child, found)

    def _called(self, c: Cursor, where: Span) -> set[str]:
        if where not in self._names:
            self._names[where] = {
                x.spelling.split("<")[0]
                for x in cc.walk(c)
                if x.spelling
                and x.kind
                in (
                    CursorKind.CALL_EXPR,
                    CursorKind.DECL_REF_EXPR,
                    CursorKind.OVERLOADED_DECL_REF,
                    CursorKind.MEMBER_REF_EXPR,
                    CursorKind.MEMBER_REF,
                )
            }
        return self._names[where]

    def faults_of(self, kernel: Cursor, where: Span) -> list[Diagnostic]:
        """Faults in the functions that the kernel reaches, not counting its own text."""
        if not self._faults:
            return []
        found: list[Diagnostic] = []
        seen: set[str] = set()
        queue = [(kernel, where)]
        while queue:
            c, w = queue.pop()
            for name in self._called(c, w) - seen:
                seen.add(name)
                for function, extent in self._callable(name):
                    found += [f for f in self._faults if inside(f.span, extent) and f not in found]
                    queue.append((function, extent))
        return found


def as_warning(d: Diagnostic) -> Diagnostic:
    """A fault that no kernel needs: worth knowing, no reason to stop."""
    return Diagnostic(d.code, d.message, d.span, Severity.WARNING, d.help, d.notes)
