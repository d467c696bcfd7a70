"""The agent's edit session: the port being worked on, what the verifier said of it, the rule by which a candidate is
kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from porter import codes
from porter.agents.ranking import Rank, all_good, rank, what_improved
from porter.agents.record import Journal
from porter.agents.regions import Draft, draft_of
from porter.model import Diagnostic, Hole, LineMapEntry, Status, Verdict
from porter.provenance.json import diagnostic_from_json, diagnostic_to_json, verdict_from_json, verdict_to_json
from porter.provenance.line_map import reanchor
from porter.provenance.record import line_hashes, sha256_text


class Verifier(Protocol):
    """The verifier as the agent sees it: texts in, answers out. It knows case and original; the agent does not."""

    def why_unavailable(self) -> str:
        """Why nothing can be verified here (the original cannot be run), "" when it can. Asked before anything is."""
        ...

    def check_names(self, text: str) -> Sequence[Diagnostic]: ...

    def compile(self, text: str) -> Sequence[Diagnostic]:
        """What keeps it from compiling; nothing when it compiles."""
        ...

    def verify(self, text: str, line_map: tuple[LineMapEntry, ...], effort: str) -> Sequence[Verdict]:
        """`effort`: small (a few launches), full, or unseen (other seeds, every shape). Seeds are fresh each time."""
        ...


@dataclass(frozen=True)
class StartingPort:
    """The port that a run starts from. `cuda` is the text around the kernel, `ir` porter's view of it."""

    kernel: str
    cuda: str
    ir: str
    port: str
    line_map: tuple[LineMapEntry, ...] = ()
    holes: tuple[Hole, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    has_case: bool = True
    optimise: bool = False
    sizes: tuple[str, ...] = ()  # names of the case that a launch may use
    template: tuple[str, ...] = ()  # whole-number template parameters, likewise
    candidate: int = 1  # of so many independent attempts at this port
    candidates: int = 1


@dataclass(frozen=True)
class KeptEdit:
    """An edit that was kept: by which attempt, which regions, and the check that it brought forward."""

    attempt: int
    regions: tuple[str, ...]
    check: str

    def __str__(self) -> str:
        return f"attempt {self.attempt}: {', '.join(self.regions)} fixed {self.check}"


@dataclass
class EditSession:
    """The state of a run. `draft` is the candidate, `best` what would be kept now."""

    subject: StartingPort
    verifier: Verifier
    journal: Journal
    draft: Draft = field(init=False)
    best: Draft = field(init=False)
    line_map: tuple[LineMapEntry, ...] = field(init=False)  # of `best`
    baseline: Rank | None = None
    baseline_verdicts: tuple[Verdict, ...] = ()
    best_verdicts: tuple[Verdict, ...] = ()
    last_verdicts: tuple[Verdict, ...] = ()  # of the last candidate verified
    last_map: tuple[LineMapEntry, ...] = ()  # of the text that the last answer is about
    edited: list[str] = field(default_factory=list)  # regions changed since `best`
    verified_texts: set[str] = field(default_factory=set)  # texts that were verified
    kept: list[KeptEdit] = field(default_factory=list)
    attempts: int = 0
    idle: int = 0  # attempts since something was kept
    gave_up: str = ""
    on_kept: Callable[[str], None] | None = None  # told the text of each edit that is kept

    def __post_init__(self) -> None:
        self.draft = self.best = draft_of(self.subject.port, self.subject.optimise or not self.subject.holes)
        self.line_map = self.subject.line_map

    # ------------------------------------------------------------ answers of the verifier, recorded

    def verify(self, draft: Draft, effort: str) -> tuple[Verdict, ...]:
        mapped = self.last_map = self.map_of(draft)

        def work() -> list[Any]:
            return [verdict_to_json(v) for v in self.verifier.verify(draft.text, mapped, effort)]

        key = {"port": sha256_text(draft.text), "effort": effort}
        return tuple(verdict_from_json(v) for v in self.journal.once("verdicts", key, work))

    def look_at(self, kind: str) -> tuple[Diagnostic, ...]:
        """What `names` or `compile` says of the candidate."""
        self.last_map = self.map_of(self.draft)
        ask = self.verifier.check_names if kind == "names" else self.verifier.compile
        key = {"port": sha256_text(self.draft.text)}
        answer = self.journal.once(kind, key, lambda: [diagnostic_to_json(d) for d in ask(self.draft.text)])
        return tuple(diagnostic_from_json(d) for d in answer)

    # ------------------------------------------------------------ the transaction

    def open_baseline(self) -> Rank:
        """Verify the port that the run starts from; everything is measured against it."""
        self.best_verdicts = self.last_verdicts = self.baseline_verdicts = self.verify(self.best, "full")
        self.verified_texts.add(self.best.text)
        self.baseline = self.best_rank
        return self.best_rank

    def why_unavailable(self) -> str:
        """Why no candidate could be verified here: what numerics says, or where it was not run what the verifier
        says."""
        numerics = next((v for v in self.last_verdicts if v.check == "numerics"), None)
        if numerics and numerics.status is Status.ERROR:
            own = any(
                d.code == codes.PORT_LAUNCH for d in numerics.diagnostics
            )  # its launch fails: another one may not
            return "" if own and self.attempts else numerics.detail
        if self.kept or self.attempts or (numerics and numerics.status in (Status.PASS, Status.FAIL)):
            return ""
        return str(self.journal.once("harness", {}, self.verifier.why_unavailable))

    @property
    def best_rank(self) -> Rank:
        return rank(self.best_verdicts, len(self.best.open_holes))

    @property
    def done(self) -> bool:
        return all_good(self.best_verdicts, len(self.best.open_holes))

    def verify_draft(self) -> tuple[bool, str]:
        """Verify the candidate; keep it when it ranks strictly higher, else go back to the best. (kept, check)."""
        self.attempts += 1
        self.verified_texts.add(self.draft.text)
        verdicts = self.verify(self.draft, "small")
        new = rank(verdicts, len(self.draft.open_holes))
        if all_good(verdicts, len(self.draft.open_holes)):
            verdicts = self.verify(self.draft, "full")
            new = rank(verdicts, len(self.draft.open_holes))
        self.last_verdicts = verdicts
        old = self.best_rank
        if not new.above(old):
            self.idle += 1
            self.journal.add("rolled back", attempt=self.attempts, regions=list(self.edited))
            self.draft, self.edited = self.best, []
            return False, ""
        check = what_improved(old, new)
        kept = KeptEdit(self.attempts, tuple(dict.fromkeys(self.edited)), check)
        self.line_map = self.map_of(self.draft)
        self.best, self.best_verdicts, self.edited, self.idle = self.draft, verdicts, [], 0
        self.kept.append(kept)
        self.journal.add("kept", attempt=kept.attempt, regions=list(kept.regions), check=check, text=self.best.text)
        if self.on_kept:
            self.on_kept(self.best.text)
        return True, check

    def map_of(self, draft: Draft) -> tuple[LineMapEntry, ...]:
        """The line map of a candidate: its new lines are this attempt's."""
        old, new = line_hashes(self.best.text), line_hashes(draft.text)
        return self.line_map if old == new else reanchor(self.line_map, old, new, f"agent:{max(1, self.attempts)}")

    def edit(self, draft: Draft, region: str) -> None:
        self.draft = draft
        self.edited.append(region)


def failing(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [v for v in verdicts if v.status in (Status.FAIL, Status.ERROR)]
