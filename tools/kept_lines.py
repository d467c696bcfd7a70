"""What a long sweep keeps of its work as it goes: JSON lines, and the commit that they were made at."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """The commit of main that the working tree is based on, with a + when files of porter differ from it.

    PORTER_COMMIT names it where the files are a copy without their history.
    """
    if named := os.environ.get("PORTER_COMMIT"):
        return named
    told = subprocess.run(["git", "merge-base", "HEAD", "main"], cwd=ROOT, capture_output=True, text=True)
    base = told.stdout.strip() or "HEAD"
    name = subprocess.run(["git", "rev-parse", "--short=10", base], cwd=ROOT, capture_output=True, text=True)
    changed = subprocess.run(["git", "diff", "--quiet", base, "--", "porter"], cwd=ROOT, capture_output=True)
    return name.stdout.strip() + ("+" if changed.returncode else "")


class KeptLines:
    """The lines of one file of a sweep: of each kernel one when it is begun, its results, and one when it is done.

    Results of a kernel are written together, so a sweep that was stopped never leaves half of them.
    """

    def __init__(self, path: Path):
        self.path = path

    @property
    def lines(self) -> list[dict[str, Any]]:
        if not self.path.is_file():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines() if line.endswith("}")]

    @property
    def finished(self) -> bool:
        return any("finished" in line for line in self.lines)

    @property
    def done(self) -> frozenset[str]:
        """Kernels that need not be run again."""
        return frozenset(line["done"] for line in self.lines if "done" in line)

    @property
    def begun(self) -> str:
        """The kernel that was at work when the sweep stopped, "" when none was."""
        lines = self.lines
        return str(lines[-1].get("begin", "")) if lines else ""

    @property
    def results(self) -> list[dict[str, Any]]:
        return [line["result"] for line in self.lines if "result" in line]

    @property
    def commits(self) -> set[str]:
        return {line["at"] for line in self.lines if "at" in line}

    def begin(self, kernel: str, at: str) -> None:
        self._append({"begin": kernel, "at": at})

    def end(self, kernel: str, results: Sequence[dict[str, Any]]) -> None:
        self._append(*({"result": r} for r in results), {"done": kernel})

    def finish(self) -> None:
        self._append({"finished": True})

    def _append(self, *lines: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as out:
            out.write("".join(json.dumps(line) + "\n" for line in lines))


class KeptRows:
    """Rows by key, appended to a file as they come: the last one of a key counts."""

    def __init__(self, path: Path, key: Callable[[dict[str, Any]], Any] = lambda row: row["key"]):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self._key = path, key
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.rows = {key(r): r for r in (json.loads(line) for line in lines if line.endswith("}"))}

    def add(self, row: dict[str, Any]) -> None:
        self.rows[self._key(row)] = row
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
