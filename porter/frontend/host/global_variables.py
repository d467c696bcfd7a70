"""Global variables of the host that some statement sets: what they are initialised with is not what is read."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from porter.frontend.host.nodes import is_integer
from porter.frontend.host.run import Run
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor


def assigned(run: Run, variable: Cursor) -> str:
    """What some statement of the program sets a global variable to, as text; "" for one that stays as it is."""
    name = variable.spelling
    if not name or variable.type.is_const_qualified() or not is_integer(variable.type.get_canonical().kind):
        return ""
    source = run.program.unit.source
    place = cc.span(variable).file
    for text in {source.text, _text_of(place) if place != str(source.path) else ""}:
        for found in re.finditer(rf"(?<![\w.>]){name}\s*=(?!=)\s*([^;]*);", text):
            before = text[: found.start()].rstrip()
            if before[-1:] in (";", "{", "}", ")"):
                return found.group(1).strip()
    return ""


@lru_cache(maxsize=64)
def _text_of(path: str) -> str:
    """The text of a header, "" where it cannot be read."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
