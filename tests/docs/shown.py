"""The commands that README, CONTRIBUTING, docs/ and the pages of codes show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "porter/codes").glob("*.md"))
SHELL = ("sh", "bash", "console", "shell")


def commands_of(text: str) -> Iterator[str]:
    """Every command of a page, without its comment.

    In a block of the shell each line is one. In another block it is a line that begins with `porter`, as in the
    examples of `porter port --help`; what follows after two spaces is its explanation.
    """
    for language, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if language in SHELL:
                command = re.sub(r"(^|\s)#\s.*", "", line.strip().removeprefix("$ ")).strip()
            elif re.match(r" *porter( [a-z]|$)", line):
                command = re.split(r" {2,}", line.strip())[0]
            else:
                continue
            if command:
                yield command


def shown_commands() -> dict[str, str]:
    """Command -> the first page that shows it."""
    found: dict[str, str] = {}
    for page in PAGES:
        for command in commands_of(page.read_text(encoding="utf-8")):
            found.setdefault(command, page.relative_to(ROOT).as_posix())
    return found
