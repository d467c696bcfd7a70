"""The agent's runs about a port, from their records (`.porter/runs/<id>/events.jsonl`, one event a line; of
candidates that were tried at once `candidate-<n>.jsonl`)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from porter.agents.budget import Spent
from porter.agents.settings import AgentSettings, load_settings
from porter.agents.shared_budget import count
from porter.model import PorterError
from porter.plain_files import read_plain, read_plain_text
from porter.review.port.reviewed_port import ReviewedPort
from porter.wording import plural

FOLDER = Path(".porter") / "runs"
RECORDS = ("events.jsonl", "candidate-*.jsonl")


@dataclass(frozen=True)
class Attempt:
    """What happened up to one verification. `text` is the port that was kept, "" for one that was rolled back."""

    number: int
    state: str  # kept, rolled back, or unfinished
    regions: tuple[str, ...] = ()
    check: str = ""  # the failing check that it mended
    calls: tuple[str, ...] = ()  # tools: their first line
    edits: tuple[tuple[str, str], ...] = ()  # region, code
    tokens: int = 0
    seconds: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class AgentRun:
    """One run. `fault` says why its record, or the end of it, cannot be read."""

    path: Path
    kernel: str = ""
    settings: AgentSettings = field(default_factory=lambda: AgentSettings(model=""))  # model and prices
    attempts: tuple[Attempt, ...] = ()
    ended: str = ""
    spent: Spent = field(default_factory=Spent)
    seconds: float = 0.0
    fault: str = ""

    @property
    def cost(self) -> str:
        """What the replies cost, each by itself, and what may have been charged; "" for a model without a price."""
        asked = self.spent.replies or self.spent.maybe_requests
        return self.spent.cost(self.settings) if asked and self.settings.price else ""

    @property
    def name(self) -> str:
        """Its folder, and which of several candidates of one run."""
        return self.path.parent.name + (f" {self.path.stem}" if self.path.stem != "events" else "")

    @property
    def label(self) -> str:
        """The run in a few words."""
        attempts = plural(len(self.attempts), "attempt")
        how = "damaged" if self.fault else self.ended.partition(" ")[0] or "not ended"
        return "  ".join(part for part in (self.name, self.settings.model, attempts, self.cost, how) if part)

    @property
    def summary(self) -> str:
        """All that the record says of the run as a whole, a row each."""
        tokens = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in self.spent.usage.to_json().items() if n)
        kept = sum(a.state == "kept" for a in self.attempts)
        rows = [
            f"run {self.name}", self.settings.model and f"model {self.settings.model}", self.ended or "not ended",
            self.fault, f"{plural(len(self.attempts), 'attempt')}, {kept} kept, {self.seconds:.0f} s",
            self.cost and f"cost {self.cost}", tokens and f"tokens {tokens}",
        ]  # fmt: skip
        return "\n".join(row for row in rows if row)


def runs_about(port: ReviewedPort) -> list[AgentRun]:
    """The runs about a port's kernel, beside the port or in the working folder, the newest first."""
    folders = dict.fromkeys(p.resolve() for p in (port.path.parent / FOLDER, configured()))
    files = [f for folder in folders if folder.is_dir() for name in RECORDS for f in folder.glob(f"*/{name}")]
    runs = [read_run(f) for f in sorted(files, key=lambda f: f.stat().st_mtime, reverse=True)]
    names = {port.name, port.name.rpartition("::")[2]}
    return [r for r in runs if r.kernel in names or (r.fault and not r.kernel)]


def configured() -> Path:
    """The folder of runs that `[tool.porter.agent]` names; the usual one where that cannot be read."""
    try:
        return load_settings().runs
    except PorterError:
        return FOLDER


def read_run(path: Path) -> AgentRun:
    """A record; a torn last line is what a crash leaves and is passed over."""
    run = AgentRun(path, settings=AgentSettings(model="", prices=_prices(path.with_name("run.json"))))
    attempts: list[Attempt] = []
    at = Attempt(1, "unfinished")
    since = 0.0
    try:
        lines = read_plain(path).split(b"\n")[:-1]
    except OSError as error:
        return replace(run, fault=str(error))
    for number, line in enumerate(lines, 1):
        try:
            event: dict[str, Any] = json.loads(line)
            kind, now = str(event["event"]), float(event.get("t", 0.0))
            if kind == "start":
                settings = replace(run.settings, model=str(event.get("model", "")))
                run = replace(run, kernel=str(event["kernel"]), settings=settings)
            elif kind in ("reply", "failed"):
                before = run.spent.usage.total
                count(run.spent, run.settings, event)
                at = replace(at, tokens=at.tokens + run.spent.usage.total - before)
            elif kind == "tool":
                if event.get("name") == "verify" and attempts and not (at.calls or at.tokens):
                    attempts[-1] = _with_call(attempts[-1], event)  # the call that ended it is noted after its end
                else:
                    at = _with_call(at, event)
            elif kind in ("kept", "rolled back"):
                regions = tuple(map(str, event.get("regions", ())))
                at = replace(at, number=int(event["attempt"]), state=kind, regions=regions, seconds=now - since)
                attempts.append(replace(at, check=str(event.get("check", "")), text=str(event.get("text", ""))))
                at, since = Attempt(attempts[-1].number + 1, "unfinished"), now
            elif kind == "end":
                run = replace(
                    run, ended=f"{event.get('state', '')} ({event.get('ended', '')}): {event.get('message', '')}"
                )
            run = replace(run, seconds=now)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return replace(run, attempts=tuple(attempts), fault=f"line {number} of the record is damaged: {error}")
    if at.calls or at.tokens:
        attempts.append(at)
    return replace(run, attempts=tuple(attempts))


def _prices(manifest: Path) -> dict[str, Any]:
    """The prices of the user's own that a run was started with."""
    try:
        return dict(json.loads(read_plain_text(manifest))["settings"]["prices"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _with_call(at: Attempt, event: dict[str, Any]) -> Attempt:
    answer = str(event.get("answer", ""))
    first = answer.splitlines()[0] if answer else ""
    sign = "!" if event.get("error") else " "
    given = event.get("input") or {}
    edits = at.edits
    if isinstance(given, dict) and isinstance(given.get("code"), str):
        edits = (*edits, (str(given.get("region", "")), given["code"]))
    return replace(at, calls=(*at.calls, f"{sign} {event.get('name')}: {first}"[:160]), edits=edits)


def difference(one: Attempt, other: Attempt) -> str:
    """A unified diff of two attempts: of the ports that were kept, else of what each wrote into each region.

    The record of an attempt that was rolled back has its edits, not the whole port.
    """
    names = (f"attempt {one.number}, {one.state}", f"attempt {other.number}, {other.state}")
    if one.text and other.text:
        return "\n".join(_diff(one.text, other.text, names)) or "the same text"
    ours, theirs = dict(one.edits), dict(other.edits)  # the last edit of a region is the one that was verified
    if not ours and not theirs:
        return "neither attempt has an edit on record"
    parts = []
    for region in {**ours, **theirs}:
        rows = _diff(ours.get(region, ""), theirs.get(region, ""), (f"{region}, {names[0]}", f"{region}, {names[1]}"))
        parts.append("\n".join(rows) or f"{region}: the same code")
    return "\n\n".join(parts)


def _diff(one: str, other: str, names: tuple[str, str]) -> list[str]:
    return list(difflib.unified_diff(one.splitlines(), other.splitlines(), names[0], names[1], lineterm=""))


def edits_of(attempt: Attempt) -> str:
    """The code that an attempt wrote into regions."""
    head = f"attempt {attempt.number}, {attempt.state}"
    rows: Sequence[str] = [f"{region}:\n{code}" for region, code in attempt.edits]
    return "\n\n".join([head, *rows]) if rows else f"{head}: no edit is recorded"
