"""The pages of the diagnostic codes: porter/codes/PRTnnn.md, part of the package so that an installed one has them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TypeVar

from porter import codes
from porter.model import Diagnostic, PorterError

T = TypeVar("T")


@cache
def pages() -> dict[str, str]:
    """Code -> text of its page, in order."""
    folder = resources.files("porter") / "codes"
    if not folder.is_dir():
        return {}
    found = {
        f.name[:-3]: f.read_text(encoding="utf-8") for f in folder.iterdir() if re.fullmatch(r"PRT\d{3}\.md", f.name)
    }
    return dict(sorted(found.items()))


def titles() -> dict[str, str]:
    """Code -> the title of its page (its first line without the code)."""
    return {
        code: text.splitlines()[0].removeprefix("#").strip().removeprefix(code).strip()
        for code, text in pages().items()
    }


def page(code: str) -> str:
    """The page of a code given as PRT503, prt503 or 503. Raises PorterError PRT956 for one that does not exist."""
    wanted = code.upper()
    wanted = f"PRT{wanted.zfill(3)}" if wanted.isdigit() else wanted
    return named(wanted, pages(), "there is no diagnostic code", "porter explain")


def named(name: str, table: Mapping[str, T], missing: str, listing: str) -> T:
    """table[name]; raises PorterError PRT956 with the nearest names when there is none.

    missing: how its message begins, `there is no pattern` say.
    """
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name, table, 3, 0.6)
    help_ = f"did you mean {' or '.join(near)}? " if near else ""
    raise PorterError(Diagnostic(codes.UNKNOWN_NAME, f"{missing} `{name}`", help=f"{help_}`{listing}` lists them all"))
