"""Several independent attempts at one kernel at once: a work place, a record and a thread each, one budget. The best is
kept, the others are dropped with their places."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from pathlib import Path

from porter.agents.budget import Spent
from porter.agents.edit_session import StartingPort, Verifier
from porter.agents.limiter import Limiter
from porter.agents.loop import Outcome, Run
from porter.agents.providers import Provider
from porter.agents.record import Journal
from porter.agents.runs.run_store import RunFolder
from porter.agents.runs.verifier import PortVerifier
from porter.agents.runs.workspace import WorkPlace, make_place, remove_place
from porter.agents.shared_budget import Cancelled, SharedBudget, spent_in
from porter.model import Diagnostic, LineMapEntry, Verdict, facts_of
from porter.model.facts import ResourcesFacts
from porter.provenance.hole_markers import open_holes

WAKE = 0.2  # seconds between looks at the threads, so that Ctrl-C is noticed
GRACE = 2.0  # seconds for the threads to notice a Ctrl-C


@dataclass
class Baseline:
    """What the verifier said of the port that all candidates start from, and of the original: asked once."""

    text: str
    lock: threading.Lock
    verdicts: tuple[Verdict, ...] = ()
    fault: str | None = None


@dataclass(frozen=True)
class CandidateVerifier:
    """The verifier for one candidate. Implements porter.agents.edit_session.Verifier; asks nothing more when `stop` is
    set."""

    verifier: Verifier
    baseline: Baseline
    stop: threading.Event

    def why_unavailable(self) -> str:
        self.go_on()
        with self.baseline.lock:
            if self.baseline.fault is None:
                self.baseline.fault = self.verifier.why_unavailable()
            return self.baseline.fault

    def check_names(self, text: str) -> Sequence[Diagnostic]:
        self.go_on()
        return self.verifier.check_names(text)

    def compile(self, text: str) -> Sequence[Diagnostic]:
        self.go_on()
        return self.verifier.compile(text)

    def verify(self, text: str, line_map: tuple[LineMapEntry, ...], effort: str) -> Sequence[Verdict]:
        self.go_on()
        if text != self.baseline.text or effort != "full":
            return self.verifier.verify(text, line_map, effort)
        with self.baseline.lock:
            self.baseline.verdicts = self.baseline.verdicts or tuple(self.verifier.verify(text, line_map, effort))
            return self.baseline.verdicts

    def go_on(self) -> None:
        if self.stop.is_set():
            raise Cancelled


@dataclass
class Candidates:
    """The candidates of one run. `files` are the kernel's: its source and its case."""

    folder: RunFolder
    subject: StartingPort
    verifier: PortVerifier
    files: Sequence[Path]
    provider: Provider | None
    secrets: tuple[str, ...]
    limiter: Limiter
    say: Callable[[str], None]
    stop: threading.Event

    @property
    def numbers(self) -> range:
        return range(1, self.folder.settings.candidates + 1)

    def record_of(self, number: int) -> Path:
        return self.folder.path / f"candidate-{number}.jsonl"

    def place_of(self, number: int) -> Path:
        return self.folder.path / "work" / f"candidate-{number}"

    def go(self) -> Outcome:
        """All of them to their ends, from where their records end; then the best. Raises what one of them raised."""
        journals: dict[int, Journal] = {}
        try:
            for number in self.numbers:
                journals[number] = Journal(self.record_of(number), self.secrets)
                if self.provider is not None:
                    journals[number].reopen()
            outcomes = self.run_all(journals)
        finally:
            self.end(journals)
        return together(outcomes, choose(outcomes))

    def run_all(self, journals: dict[int, Journal]) -> list[Outcome]:
        settings, halt = self.folder.settings, threading.Event()  # of these candidates; `stop` is of the whole command
        budget = SharedBudget(settings, spent_in([j.past for j in journals.values()], settings), halt)
        baseline = Baseline(self.subject.port, threading.Lock())
        places = {n: make_place(self.place_of(n), self.folder.target, self.folder.base, self.files) for n in journals}
        outcomes: dict[int, Outcome] = {}
        errors: dict[int, BaseException] = {}

        def work(number: int) -> None:
            try:
                outcomes[number] = self.run_one(number, places[number], journals[number], budget, baseline)
            except Cancelled:
                pass
            except BaseException as error:  # raised again below, in the thread that waits
                errors[number] = error
                halt.set()  # the others would go on for nothing; what they have is recorded

        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in self.numbers]
        for thread in threads:
            thread.start()
        try:
            while any(t.is_alive() for t in threads) and not self.stop.is_set():
                next((t for t in threads if t.is_alive()), threads[0]).join(WAKE)
        except KeyboardInterrupt:
            self.stop.set()
            raise
        finally:
            if self.stop.is_set():  # those that wait for a model do not notice; what they get is not recorded
                halt.set()
                end = time.monotonic() + GRACE
                for thread in threads:
                    thread.join(max(0.0, end - time.monotonic()))
        if self.stop.is_set():
            raise Cancelled
        for number in self.numbers:
            if number in errors:
                raise errors[number]
        return [outcomes[n] for n in self.numbers]

    def run_one(
        self, number: int, place: WorkPlace, journal: Journal, budget: SharedBudget, baseline: Baseline
    ) -> Outcome:
        subject = replace(self.subject, candidate=number, candidates=len(self.numbers))
        verifier = CandidateVerifier(replace(self.verifier, folder=place.port.parent), baseline, budget.stop)
        run = Run(
            subject, verifier, self.provider, self.folder.settings, journal, self.limiter,
            lambda line: self.say(f"candidate {number}: {line}"), shared=budget, on_kept=place.write,
        )  # fmt: skip
        return run.go()

    def end(self, journals: dict[int, Journal]) -> None:
        """Close the records and remove the places; the texts that were kept are in the records."""
        for journal in journals.values():
            journal.close()
        for number in self.numbers:
            remove_place(self.place_of(number))


# ---------------------------------------------------------------- which one is kept

STATES = ("verified", "improved", "unverified", "unchanged", "refused-unseen")  # best first


def choose(outcomes: Sequence[Outcome]) -> int:
    """The number of the best, from 1: by what may be kept, the verdicts' rank, open holes, resources, cost, order."""
    best = 0
    for at in range(1, len(outcomes)):
        if _better(outcomes[at], outcomes[best]):
            best = at
    return best + 1


def _better(one: Outcome, other: Outcome) -> bool:
    states = [min(STATES.index(o.state), STATES.index("unchanged")) for o in (one, other)]
    if states[0] != states[1]:
        return states[0] < states[1]
    if one.rank and other.rank and (one.rank.above(other.rank) or other.rank.above(one.rank)):
        return one.rank.above(other.rank)
    return _tie(one) < _tie(other)


def _tie(outcome: Outcome) -> tuple[int, tuple[int, ...], Decimal]:
    return len(open_holes(outcome.candidate)), used(outcome.verdicts), outcome.spent.usd


def used(verdicts: Sequence[Verdict]) -> tuple[int, ...]:
    """What a port takes, over its instances: local memory, registers, shared memory, instructions, all in sums."""
    facts = facts_of(verdicts, ResourcesFacts) or ResourcesFacts()
    names = ("local_bytes", "registers", "shared_bytes", "instructions")
    return tuple(sum(used.port.get(name, 0) for used in facts.instances.values()) for name in names)


def together(outcomes: Sequence[Outcome], number: int) -> Outcome:
    """The chosen one, with what all of them cost."""
    chosen = outcomes[number - 1]
    spent = reduce(Spent.with_run, (o.spent for o in outcomes), Spent())
    message = f"candidate {number} of {len(outcomes)}: {chosen.message}"
    return replace(chosen, spent=spent, message=message, candidates=tuple(outcomes), chosen=number)
