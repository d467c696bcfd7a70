"""A verifier that answers with verdicts of a real H200 (bench/results/gpu_verdicts.json): measured numbers, for code
that needs them, on a machine without a GPU. Which kernel's record answers for a text is the test's to say."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from porter.model import Verdict
from porter.provenance.json import verdict_from_json

FILE = Path(__file__).parents[2] / "bench" / "results" / "gpu_verdicts.json"


@lru_cache(maxsize=1)
def measured() -> dict[str, tuple[Verdict, ...]]:
    """The verdicts of each reference kernel's port."""
    kernels = json.loads(FILE.read_text(encoding="utf-8"))["kernels"]
    return {name: tuple(verdict_from_json(v) for v in row["verdicts"]) for name, row in kernels.items()}


class RecordedVerifier:
    """Implements porter.agents.edit_session.Verifier. `known`: the kernel whose record answers for a text."""

    def __init__(self, known: dict[str, str]) -> None:
        self.known = known
        self.asked: list[str] = []

    def why_unavailable(self):
        return ""

    def check_names(self, text):
        return []

    def compile(self, text):
        return []

    def verify(self, text, line_map, effort):
        self.asked.append(effort)
        return list(measured()[self.known[text]])
