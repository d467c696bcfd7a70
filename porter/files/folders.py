"""What lies below a folder that a person names."""

from __future__ import annotations

import os
from pathlib import Path


def files_below(folder: Path, *endings: str) -> list[Path]:
    """The files with one of these endings (`.cu`), sorted. Hidden folders are left out: `.git`, `.venv`, and `.porter`
    with the places of candidates, which hold copies of sources and ports."""
    found: list[Path] = []
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [path for name in files if (path := Path(here, name)).suffix in endings and path.is_file()]
    return sorted(found)
