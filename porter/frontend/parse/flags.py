"""Why a name is unknown: a header that was read declares it under `#ifdef FLAG`. Text only, a hint for a person."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from porter.model import Diagnostic

_UNKNOWN = re.compile(
    r"(?:no member named|use of undeclared identifier|unknown type name|no template named) '([A-Za-z_]\w*)'"
)
_IF = re.compile(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)")
_DEFINED = re.compile(r"(?<!!)\bdefined\s*\(?\s*([A-Za-z_]\w*)")


def guard_of(name: str, files: Iterable[tuple[str, str]], given: Collection[str] = ()) -> tuple[str, str, int] | None:
    """(flag, file, line) of the first place where `name` stands under a positive #ifdef of a flag that is not `given`.

    `files` are (path, text).
    """
    word = re.compile(rf"\b{re.escape(name)}\b")
    for path, text in files:
        if name not in text:
            continue
        stack: list[str] = []  # the flag that each open condition wants, "" for none
        for number, line in enumerate(text.splitlines(), 1):
            m = _IF.match(line)
            if m is None:
                if any(stack) and word.search(line) and not line.lstrip().startswith("//"):
                    missing = [flag for flag in stack if flag and flag not in given]
                    if missing:
                        return missing[-1], path, number
                continue
            kind, condition = m.groups()
            if kind == "endif":
                del stack[-1:]
            elif kind in ("else", "elif"):
                stack[-1:] = [_flag(kind, condition)] if stack else []
            else:
                stack.append(_flag(kind, condition))
    return None


def _flag(kind: str, condition: str) -> str:
    if kind == "ifdef":
        return condition.split("//")[0].strip().split(" ")[0]
    m = _DEFINED.search(condition) if kind in ("if", "elif") else None
    return m.group(1) if m else ""


def with_flag_hint(d: Diagnostic, files: Iterable[tuple[str, str]], given: Collection[str] = ()) -> Diagnostic:
    """The diagnostic with a help line that names the flag, when a header tells one that is not `given` already."""
    m = _UNKNOWN.search(d.message)
    found = guard_of(m.group(1), files, given) if m else None
    if m is None or found is None or found[1:] == (d.span.file, d.span.line):
        return d
    flag, path, line = found
    return replace(d, help=f"'{m.group(1)}' is declared under #ifdef {flag} in {path}:{line}: try -D {flag}")
