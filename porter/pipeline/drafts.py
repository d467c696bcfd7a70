"""A port that is judged before it is written: its text in a folder of its own, and messages that speak of the port."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter.case.instances import instance_values
from porter.corpus.runtime.scratch import Scratch
from porter.model import Diagnostic, Instance, KernelInfo, LineMapEntry, Verdict
from porter.provenance.line_map import cuda_span

if TYPE_CHECKING:
    from porter.verify.compile.worker import CompileResult


@dataclass(frozen=True)
class Draft:
    """A file with the text of a port, and how messages are to name it."""

    path: Path
    name: str

    def renamed(self, text: str) -> str:
        """A text with the name in place of the draft's path."""
        return text.replace(os.path.realpath(self.path), self.name).replace(str(self.path), self.name)

    def message(self, d: Diagnostic) -> Diagnostic:
        """A message that names the draft nowhere, neither as its place nor in its texts."""
        span = replace(d.span, file=self.name) if is_file_of(d.span.file, self.path) else d.span
        notes = tuple(self.renamed(n) for n in d.notes)
        return replace(d, message=self.renamed(d.message), span=span, help=self.renamed(d.help), notes=notes)

    def verdict(self, v: Verdict) -> Verdict:
        """A verdict that names the draft nowhere."""
        found = tuple(self.message(d) for d in v.diagnostics)
        return replace(v, detail=self.renamed(v.detail), diagnostics=found)


@contextmanager
def drafted(text: str, name: str, below: Path | None = None) -> Iterator[Draft]:
    """A draft whose file is called as the last part of `name`, in a folder below `below` (None: where the system keeps
    such files) that is deleted at the end."""
    with Scratch() if below is None else tempfile.TemporaryDirectory(prefix="porter-", dir=below) as folder:
        path = Path(folder) / Path(name).name
        path.write_text(text, encoding="utf-8")
        yield Draft(path, name)


def compiled(
    draft: Draft,
    info: KernelInfo,
    instances: Sequence[Instance],
    arches: Sequence[str],
    jobs: int,
    timeout: float = 120.0,
) -> list[CompileResult]:
    """The draft compiled at each instance for each architecture, in that order; errors name it by its name. `timeout`
    is in seconds a compilation."""
    from porter.verify.compile.worker import CompileRequest, compile_port

    requests = [CompileRequest(instance_values(info, i), arch) for i in instances for arch in arches]
    made = compile_port(draft.path, requests, timeout=timeout, jobs=jobs)
    return [r if r.ok else replace(r, error=draft.renamed(r.error), file=draft.name) for r in made]


def is_file_of(file: str, port: Path) -> bool:
    """Whether a place is in the file of a port."""
    return bool(file) and os.path.realpath(file) == os.path.realpath(port)


def at_source(verdict: Verdict, port: Path, line_map: tuple[LineMapEntry, ...], named: str = "") -> Verdict:
    """A verdict whose places in the port are places in the CUDA source, with the line of the port in a note; what
    `entry` says is about lines of the port. `named`: what the verdict calls the port, where not by its path."""

    def place(d: Diagnostic) -> Diagnostic:
        if not is_file_of(d.span.file, Path(named or port)):
            return d
        if verdict.check == "entry":  # about the function that launches, of which the source has nothing
            return replace(d, span=replace(d.span, file=str(port)))
        note = f"port: {port}:{d.span.line}" if d.span.line else f"port: {port}"
        return replace(d, span=cuda_span(line_map, d.span.line), notes=(note, *d.notes), port_line=d.span.line)

    return replace(verdict, diagnostics=tuple(place(d) for d in verdict.diagnostics))
