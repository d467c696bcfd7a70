"""The verifier as the agent calls it: verifies texts of one kernel's port in temporary folders."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from porter import codes
from porter.agents.edit_session import StartingPort
from porter.case.instances import instance_values
from porter.case.reader import Case
from porter.config import PortConfig, worker_count
from porter.model import Diagnostic, LineMapEntry, Verdict
from porter.pipeline.drafts import Draft, compiled, drafted
from porter.pipeline.outputs import Translation
from porter.pipeline.stages import JudgeOptions, Run, run_checks
from porter.source import Span

SMALL = 2  # launches an instance, to find out cheaply that something is wrong
UNSEEN_SECONDS = 600.0  # for every shape of the case
AROUND = 30_000  # characters of a file that is shown whole

_one_at_a_time = threading.RLock()  # parsing and the emulator share state; models are asked meanwhile


@dataclass(frozen=True)
class PortVerifier:
    """Implements porter.agents.edit_session.Verifier for a translated kernel with a case."""

    made: Translation
    case: Case
    config: PortConfig
    target: Path
    folder: Path | None = None  # drafts are put below it; None: where the system keeps such files

    def why_unavailable(self) -> str:
        from porter.verify.backends.by_name import choose
        from porter.verify.harness import harness_fault

        with _one_at_a_time:
            backend = choose(self.config.backend, self.config.arch[0])
            return harness_fault(self.made.unit, self.made.info, self.case, self.config.arch[0], backend)

    def check_names(self, text: str) -> list[Diagnostic]:
        from porter.verify.checks import names

        with _one_at_a_time, self.draft(text) as draft:
            try:
                found = names.check_names(draft.path)[1]
            except (RuntimeError, SyntaxError) as error:
                found = [
                    Diagnostic(
                        codes.NO_SUCH_LIBRARY_NAME, f"names could not be looked up: {error}", Span(str(draft.path), 1)
                    )
                ]
            return [draft.message(d) for d in found]

    def compile(self, text: str) -> list[Diagnostic]:
        """For the first architecture, all instances. A port that is not honest is not imported."""
        from porter.verify.checks.honesty import check_honesty

        with _one_at_a_time, self.draft(text) as draft:
            found = check_honesty(text, draft.path)
            if found:
                return [draft.message(d) for d in found]
            arch, jobs = self.config.arch[0], worker_count(self.config)
            results = compiled(draft, self.made.info, self.made.instances, (arch,), jobs)
            return [
                Diagnostic(codes.DOES_NOT_COMPILE, f"for {arch}: {r.error}", Span(draft.name, r.line))
                for r in results
                if not r.ok
            ]

    def verify(self, text: str, line_map: tuple[LineMapEntry, ...], effort: str) -> tuple[Verdict, ...]:
        """`small` and `full` take the run's seed, or a fresh one; `unseen` always a fresh one and every shape."""
        unseen = effort == "unseen"
        config = replace(self.config, seed=None, thorough=True) if unseen else self.config
        options = JudgeOptions(
            line_map=line_map,
            launches=SMALL if effort == "small" else 0,
            seconds=UNSEEN_SECONDS if unseen else 0.0,
            without=("performance",) if effort == "small" else (),  # on a GPU times take a minute
        )
        with _one_at_a_time, self.draft(text) as draft:
            run = Run(self.made.info.name)
            verdicts = run_checks(draft.path, self.made.unit, self.made.info, self.case, config, run, options)
            return tuple(draft.verdict(v) for v in verdicts)

    def draft(self, text: str) -> AbstractContextManager[Draft]:
        """Named without a folder: that of the draft is another one each time, and a model needs none."""
        return drafted(text, self.target.name, self.folder)


def subject_of(made: Translation, optimise: bool) -> StartingPort:
    """What the agent is shown of a kernel: CUDA text, IR of the first instance, port, holes. Never the case."""
    from porter.ir.printer import format_kernel

    source, span = made.unit.source, made.info.span
    text = source.text
    if len(text) > AROUND:
        text = source.excerpt(replace(span, col=1, end_col=10_000))
    template = instance_values(made.info, made.instances[0]) if made.instances else {}
    return StartingPort(
        kernel=made.info.name,
        cuda=text,
        ir=format_kernel(made.kernels[0]) if made.kernels else "",
        port=made.module.text,
        line_map=made.module.line_map,
        holes=made.module.holes,
        diagnostics=made.module.notes,
        has_case=made.case is not None,
        optimise=optimise,
        sizes=tuple(n for n, _ in made.case.sizes) if made.case else (),
        template=tuple(n for n, v in template.items() if isinstance(v, int) and not isinstance(v, bool)),
    )
