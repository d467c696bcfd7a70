"""git, run in a folder."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Variables of a git that may have started porter (a hook, an alias) name its repository, which may be another one.
_OF_A_REPOSITORY = (
    "GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX",
)  # fmt: skip


@dataclass(frozen=True)
class GitAnswer:
    """What git printed. Not `ok`: it is not there, took too long, printed no UTF-8, or refused: see `error`."""

    ok: bool
    text: str = ""
    error: str = ""

    @property
    def line(self) -> str:
        return self.text.strip()


def git(folder: Path | None, *arguments: str, seconds: float = 60.0) -> GitAnswer:
    """Run git in a folder, for at most `seconds`. Raises nothing."""
    place = [] if folder is None else ["-C", str(folder)]
    own = {k: v for k, v in os.environ.items() if k not in _OF_A_REPOSITORY} | {"GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        done = subprocess.run(
            ["git", *place, *arguments], capture_output=True, encoding="utf-8", timeout=seconds, check=False, env=own,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        return GitAnswer(False, "", str(error))
    return GitAnswer(done.returncode == 0, done.stdout, done.stderr.strip())
