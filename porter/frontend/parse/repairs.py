"""Text that nvcc accepts and clang does not, rewritten for clang's eyes only: the files on disk are never touched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from porter.frontend.parse import clang_compat as cc

_TEMPLATE = re.compile(r"missing 'template' keyword prior to dependent template name '([^']+)'")
_EXPANDED = re.compile(r"expanded from macro '(\w+)'")
_ESCAPE = re.compile(r"invalid % escape in inline assembly string")
_EXTERN_SHARED = re.compile(r"__shared__ variable '([^']+)' cannot be 'extern'")

Edit = tuple[int, int, bytes]  # start, end (bytes), what stands there instead


def repairs(diagnostics: Iterable[Any], content: Callable[[str], bytes]) -> dict[str, bytes]:
    """File name -> its content with the repairs that clang's diagnostics call for; files without one are absent.

    `a::f<n>(x)` of a dependent `a` becomes `a::template f<n>(x)`; `extern __shared__ T x[32][32]` loses its first
    bound, which dynamic shared memory does not have, and that of one object its `extern`; a special register of inline
    PTX gets its second `%`; a macro that stands for `#pragma unroll` stands for the operator.
    """
    edits: dict[str, set[Edit]] = {}
    for d in diagnostics:
        if d.location.file is None:
            continue
        name, at = d.location.file.name, d.location.offset
        edit = _edit(d.spelling, content(name), at)
        if edit is not None:
            edits.setdefault(name, set()).add(edit)
        if _ESCAPE.search(d.spelling):
            # in the macro's body, where a macro has it; a text made by # is in no file
            places = [cc.spelled(x.location) for x in (d, *d.children)]
            where = next((p for p in places if p.file), None)
            if where is not None:
                edits.setdefault(where.file, set()).update(_escapes(content(where.file), where.offset))
        for note in d.children:
            m = _EXPANDED.search(note.spelling)
            if m:
                where = cc.spelled(note.location)
                edit = _pragma(content(where.file), where.line, m.group(1))
                if edit is not None:
                    edits.setdefault(where.file, set()).add(edit)
    out: dict[str, bytes] = {}
    for name, found in edits.items():
        text = content(name)
        for start, end, new in sorted(found, reverse=True):
            text = text[:start] + new + text[end:]
        out[name] = text
    return out


def _pragma(text: bytes, line: int, macro: str) -> Edit | None:
    """The edit that makes `#define MACRO #pragma words` the operator; None if that is not what stands on the line."""
    start = sum(len(row) for row in text.splitlines(keepends=True)[: line - 1])
    pattern = rb"[ \t]*#[ \t]*define[ \t]+" + macro.encode() + rb"[ \t]+(#[ \t]*pragma[ \t]+([^\n\\/]*[^\n\\/\s]))"
    m = re.compile(pattern).match(text, start)
    if m is None:
        return None
    return (m.start(1), m.end(1), b'_Pragma("' + m.group(2).replace(b'"', b'\\"') + b'")')


def _edit(message: str, text: bytes, at: int) -> Edit | None:
    """The edit for one diagnostic; None where the place is not what the message speaks of (inside a macro)."""
    m = _TEMPLATE.search(message)
    if m:
        # the place is that of the name or of the qualifier before it
        statement = text[max(at - 2, 0) : text.find(b";", at) + 1]
        name = re.search(rb"(?:::|\.|->)\s*(" + m.group(1).encode() + rb")\s*<", statement)
        if name:
            start = max(at - 2, 0) + name.start(1)
            return (start, start, b"template ")
    m = _EXTERN_SHARED.search(message)
    if m:
        declaration = text[at : text.find(b";", at) + 1]
        bound = re.search(rb"\b" + m.group(1).encode() + rb"\s*\[([^\[\]]*)\]", declaration)
        if bound and bound.group(1).strip():
            return (at + bound.start(1), at + bound.end(1), b"")
        start = max(text.rfind(c, 0, at) for c in (b";", b"{", b"}", b"\n#")) + 1
        extern = re.compile(rb"\bextern\b").search(text, start, at + len(declaration))
        if extern:  # of one object
            return (extern.start(), extern.end(), b"porter_extern_shared")
    return None


def _escapes(text: bytes, at: int) -> set[Edit]:
    """What makes `%laneid` `%%laneid`, for each register named so in the template of the inline PTX around `at`."""
    start = max((m.end() for m in re.finditer(rb"\b(?:__)?asm(?:__)?\b", text[:at])), default=at)
    found: set[Edit] = set()
    for token in re.compile(rb'"((?:\\.|[^"\\])*)"|//[^\n]*|/\*.*?\*/|[:;]', re.S).finditer(text, start):
        if token.group() in (b":", b";"):
            break
        if token.group(1) is not None:
            for m in re.finditer(rb"(?<!%)(?:%%)*(%)(?=[A-Za-z_]\w|$)", token.group(1)):
                place = token.start(1) + m.start(1)
                found.add((place, place, b"%"))
    return found
