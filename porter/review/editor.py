"""The person's own editor: $VISUAL, $EDITOR, else vi or nano."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from porter import codes
from porter.corpus.runtime.scratch import Scratch
from porter.model import Diagnostic, PorterError


def editor_command() -> list[str]:
    """Raises PorterError PRT962 when there is no editor."""
    for name in (os.environ.get("VISUAL", ""), os.environ.get("EDITOR", ""), "vi", "nano"):
        command = shlex.split(name)
        if command and shutil.which(command[0]):
            return command
    raise PorterError(
        Diagnostic(codes.DECISION_NOT_POSSIBLE, "there is no editor", help="set EDITOR, or edit in place (`i`)")
    )


def open_in_editor(path: Path, line: int) -> None:
    """Open a file at a line and wait. Raises PorterError PRT962 when the editor fails."""
    command = [*editor_command(), f"+{line}", str(path)]
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise PorterError(
            Diagnostic(codes.DECISION_NOT_POSSIBLE, f"{command[0]} cannot be run: {error}", help="set EDITOR")
        ) from error
    if code:
        raise PorterError(
            Diagnostic(codes.DECISION_NOT_POSSIBLE, f"{command[0]} ended with {code}", help="set EDITOR to another one")
        )


def edited_text(text: str, port: Path) -> str:
    """`text` after the person edited it in a file of its own."""
    with Scratch() as folder:
        path = Path(folder) / port.name
        path.write_text(text + "\n", encoding="utf-8")
        open_in_editor(path, 1)
        return path.read_text(encoding="utf-8")
