"""The verifier for texts of one bundled port, as the agent asks it; originals are the bundle's, so nothing is parsed.

Implements porter.agents.edit_session.Verifier with `verify_port`, on the backend that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.shapes import SHAPES
from porter.agents.edit_session import EditSession, StartingPort
from porter.agents.record import Journal
from porter.model import Diagnostic, LineMapEntry, Status, Verdict
from porter.source import Source
from porter.verify.backends.interface import Backend
from porter.verify.run import CHECKS, VerifyRequest, verify_port
from tools.gpu.manifest import Bundle, KernelFacts

SMALL = 2  # launches an instance


@dataclass
class BundleVerifier:
    bundle: Bundle
    kernel: KernelFacts
    backend: Backend
    folder: Path  # for drafts
    seconds: float = 20.0  # for the times of a port
    asked: list[str] = field(default_factory=list)

    def why_unavailable(self) -> str:
        return ""

    def check_names(self, text: str) -> Sequence[Diagnostic]:
        return ()

    def compile(self, text: str) -> Sequence[Diagnostic]:
        return ()

    def verify(self, text: str, line_map: tuple[LineMapEntry, ...], effort: str) -> Sequence[Verdict]:
        self.asked.append(effort)
        port = self.folder / Path(self.kernel.port).name
        port.write_text(text, encoding="utf-8")
        case = self.bundle.case(self.kernel)
        small = {"launches": SMALL} if effort == "small" else {}
        request = VerifyRequest(
            port_path=port,
            source=Source(self.bundle.folder / case.source, ""),
            info=self.kernel.info(0),
            case=case,
            arches=(self.bundle.arch,),
            jobs=4,
            backend=self.backend,
            originals=self.bundle.originals(self.kernel),
            timing_sizes=SHAPES.get(self.kernel.name, []),
            timing_budget=self.seconds,
            checks=tuple(c for c in CHECKS if c != "performance" or not small),
            explain=False,
            **small,
        )
        return verify_port(request)


def session_of(verifier: BundleVerifier) -> EditSession:
    """An edit session with the bundled port on it, to be optimised; its record is beside the drafts."""
    case = verifier.bundle.case(verifier.kernel)
    text = (verifier.bundle.folder / verifier.kernel.port).read_text(encoding="utf-8")
    numbers = [n for n, v in verifier.kernel.instances[0].values.items() if type(v) is int]
    sizes = tuple(n for n, _ in case.sizes)
    subject = StartingPort(verifier.kernel.kernel, "", "", text, optimise=True, sizes=sizes, template=tuple(numbers))
    return EditSession(subject, verifier, Journal(verifier.folder / "events.jsonl"))


def status_of(session: EditSession, check: str) -> Status:
    """Of the last verified candidate."""
    return next(v.status for v in session.last_verdicts if v.check == check)
