"""SASS of a cubin with source lines, by nvdisasm where one is installed (pip's nvidia-cuda-nvdisasm, or on PATH)."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from porter.corpus.runtime.scratch import Scratch
from porter.extras import install
from porter.verify.compile.ptxas import newest_tool

MISSING = f"nvdisasm is not installed: `{install('review', 'nvidia-cuda-nvdisasm')}`"


@dataclass(frozen=True)
class Instruction:
    """One machine instruction as nvdisasm prints it, with the file and line that the cubin names (line 0: none)."""

    text: str
    file: str = ""
    line: int = 0


@cache
def find_nvdisasm() -> Path | None:
    """The newest nvdisasm among pip's packages and PATH, or None."""
    return newest_tool("nvdisasm")


def disassemble(cubin: bytes, entry: str = "") -> tuple[Instruction, ...]:
    """The instructions of a cubin in order, of one kernel when `entry` is given.

    Raises RuntimeError with a sentence for a person when nvdisasm is missing, fails or takes more than a minute.
    """
    tool = find_nvdisasm()
    if tool is None:
        raise RuntimeError(MISSING)
    with Scratch() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        try:
            command = [str(tool), "-g", "-c", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"nvdisasm did not answer: {error}") from error
    if done.returncode:
        raise RuntimeError(f"nvdisasm failed: {done.stderr.strip()[:200]}")
    return read_listing(done.stdout, entry)


def read_listing(text: str, entry: str = "") -> tuple[Instruction, ...]:
    """The instructions in what `nvdisasm -g -c` prints."""
    found: list[Instruction] = []
    section, file, line = "", "", 0
    for row in text.splitlines():
        if named := re.match(r"\s*\.section\s+\.text\.(\S+?),", row):
            section, file, line = named[1], "", 0
        elif place := re.search(r'//## File "([^"]*)", line (\d+)', row):
            file, line = place[1], int(place[2])
        elif (code := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?;)", row)) and entry in ("", section):
            found.append(Instruction(code[1].strip(), file, line))
    return tuple(found)
