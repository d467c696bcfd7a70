"""`porter eval`: how well a model fills holes and optimises, over the tasks in `porter/agents/tasks`, by anyone with a
key. A task counts when the verifier says so, unseen seeds and shapes included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import porter.agents
from porter.agents.prices import dollars
from porter.agents.runs.session import Result, Session, improve_files
from porter.agents.settings import AgentSettings
from porter.config import PortConfig
from porter.model import Diagnostic, Report
from porter.report.code_pages import named
from porter.wording import plural

ROOT = Path(porter.agents.__path__[0]) / "tasks"
KINDS = ("fill", "optimise")
GOOD = {"fill": "verified", "optimise": "improved"}
HEAD = ("task", "kind", "success", "state", "attempts", "tokens", "cost")


@dataclass(frozen=True)
class EvalTask:
    """A kernel with its case. `fill`: the translator leaves a hole; `optimise`: its port is verified and slow."""

    name: str
    kind: str
    source: Path

    @property
    def about(self) -> str:
        return self.source.read_text(encoding="utf-8").splitlines()[0].removeprefix("// ")


@dataclass(frozen=True)
class Score:
    task: EvalTask
    result: Result | None  # None: the task could not be set up
    messages: tuple[Diagnostic, ...] = ()

    @property
    def success(self) -> bool:
        outcome = self.result.outcome if self.result else None
        return outcome is not None and outcome.state == GOOD[self.task.kind]

    @property
    def row(self) -> tuple[str, ...]:
        outcome = self.result.outcome if self.result else None
        head = (self.task.name, self.task.kind, "yes" if self.success else "no")
        if outcome is None:
            return (*head, "failed", "", "", "")
        spent = outcome.spent
        return (*head, outcome.state, str(spent.attempts), str(spent.usage.total), outcome.cost)

    def to_json(self) -> dict[str, Any]:
        head = {"task": self.task.name, "kind": self.task.kind, "success": self.success}
        return head | (self.result.to_json() if self.result else {"error": [d.message for d in self.messages]})


def all_tasks() -> list[EvalTask]:
    """The evaluation set, by kind and name."""
    return [EvalTask(path.stem, kind, path) for kind in KINDS for path in sorted((ROOT / kind).glob("*.cu"))]


def choose(names: Sequence[str]) -> list[EvalTask]:
    """Tasks by name or kind; all without names. Raises PorterError PRT956 for a name that is none."""
    tasks = all_tasks()
    known = {t.name: t for t in tasks}
    if not names:
        return tasks
    wanted: dict[EvalTask, None] = {}
    for name in names:
        of_kind = [t for t in tasks if t.kind == name]
        wanted |= dict.fromkeys(of_kind or [named(name, known, "there is no task", "porter eval --list")])
    return list(wanted)


def evaluate(
    tasks: Sequence[EvalTask],
    config: PortConfig,
    settings: AgentSettings,
    session: Session,
    done: Callable[[Score], None] = lambda score: None,
) -> list[Score]:
    """Each task in turn, ported into a folder of its kind below `config.output`. `done` is told each score."""
    scores = []
    for task in tasks:
        own = replace(config, output=config.output / task.kind, force=True)
        report, results = improve_files([task.source], own, settings, session, (task.kind == "optimise",))
        scores.append(Score(task, results[0] if results else None, _messages(report)))
        done(scores[-1])
    return scores


def _messages(report: Report) -> tuple[Diagnostic, ...]:
    return (*report.diagnostics, *(d for k in report.kernels for d in k.diagnostics))


def total(scores: Sequence[Score]) -> str:
    """`fill 9 of 12, optimise 2 of 6; 41 attempts, 1234567 tokens, $3.21`"""
    parts = []
    for kind in KINDS:
        mine = [s for s in scores if s.task.kind == kind]
        if mine:
            parts.append(f"{kind} {sum(s.success for s in mine)} of {len(mine)}")
    spent = [s.result.outcome.spent for s in scores if s.result and s.result.outcome]
    cost = dollars(sum((s.usd for s in spent), start=type(spent[0].usd)(0))) if spent else "$0.00"
    tokens = sum(s.usage.total for s in spent)
    return f"{', '.join(parts)}; {plural(sum(s.attempts for s in spent), 'attempt')}, {tokens} tokens, {cost}"
