"""The files that a source includes: they define its kernels as much as the source does."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from porter.frontend.parse.hermetic import HEADERS, VIRTUAL

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


def project_headers(unit: ParsedUnit) -> dict[str, str]:
    """SHA-256 of every file that the source includes, by its path as seen from the working folder; porter's own
    headers and the stand-ins for missing ones are left out."""
    if "project_headers" not in unit.memo:
        own = str(HEADERS) + os.sep
        found: dict[str, str] = {}
        for name in dict.fromkeys(os.path.normpath(i.include.name) for i in unit.tu.get_includes()):
            if not os.path.abspath(name).startswith(own) and not name.startswith(VIRTUAL):
                try:
                    with open(name, "rb") as file:
                        found[name] = hashlib.sha256(file.read()).hexdigest()
                except OSError:
                    continue  # gone since it was read: the next parse says so
        unit.memo["project_headers"] = found
    return unit.memo["project_headers"]  # type: ignore[no-any-return]
