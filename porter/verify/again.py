"""Scratch memory as an earlier launch left it: one that came to its end, and one that was ended on its way.

Where the original gives the same results on such memory, whoever uses it may count on that, and the port has to as
well. Each side finds what it left itself: what scratch holds is its own business. Scratch without `init` may hold
anything from the start, so an earlier launch cannot make it worse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from porter import codes
from porter.case.reader import LaunchShape
from porter.verify.backends.interface import Backend, RunResult
from porter.verify.execute import InstanceUnderTest, copies
from porter.verify.launches.buffers import Buffers
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.trials import Trial
from porter.verify.numerics.comparison import Finding
from porter.verify.repeat import DECISIVE, comparable

SHARES = (0.3, 0.7)  # of a launch's work, after which it is ended
WRITES = 6  # strong writes after which it is ended: the first ones, the last ones, and between
PATIENCE = 8  # times the work of an undisturbed launch, after which one is taken to hang


@dataclass
class _Side:
    """One side of a trial. `earlier` and `before`: what the launch that leaves scratch is given, and the one that finds
    it: other inputs, so that what scratch still holds is wrong."""

    subject: InstanceUnderTest
    trial: Trial
    backend: Backend
    shape: LaunchShape
    port: bool
    earlier: Buffers
    before: Buffers
    schedules: tuple[int, ...]

    def launch(
        self, given: Buffers, backend: Backend, left: Buffers | None = None, schedule: int = 0
    ) -> tuple[Buffers, bool, RunResult]:
        """What a launch leaves, did it nothing forbidden, and the rest. `left`: where its scratch comes from."""
        buffers = copies(given)
        for name, buffer in buffers.items():
            if left is not None and buffer.spec.role == "scratch":
                buffer.raw[:] = left[name].raw
                buffers[name] = replace(buffer, initialised=True)
        result = self.subject.launch(
            backend, self.trial, self.shape, buffers, port=self.port, schedule=schedule, checks=False
        )
        good = not result.error and not any(v.kind in DECISIVE for v in result.violations)
        return buffers, good, result

    def outcomes(self, abort: bool = True) -> tuple[str, str]:
        """What goes wrong in a second launch, and in one after an aborted one; "" where nothing does."""
        ending = getattr(self.backend, "ending", None)
        first, good, done = self.launch(self.earlier, ending() if ending is not None else self.backend)
        fresh, well, _ = self.launch(self.before, self.backend)
        if not (good and well):
            return ("its first launch fails",) * 2
        expected = comparable(fresh, self.trial)
        patient = ending(PATIENCE * done.work) if ending is not None and done.work else self.backend

        def first_difference(left: Buffers, schedules: tuple[int, ...]) -> str:
            for schedule in schedules:  # right in one order only is right by luck
                buffers, fine, _ = self.launch(self.before, patient, left, schedule)
                if not fine:
                    return "it does not finish, or does something forbidden"
                for name, words in comparable(buffers, self.trial).items():
                    count = int(np.count_nonzero(words != expected[name]))
                    if count and buffers[name].spec.compare != "sum":
                        return f"{count} of {words.size} elements of {name} differ"
            return ""

        second = first_difference(first, self.schedules)
        if ending is None or not abort or second:
            return second, second
        few = (*self.schedules[:1], *[s for s in self.schedules if s < 0][:1])
        total = done.strong_writes
        points = sorted({k for k in range(total) if k in (1, 2, total - 2, total - 1)} | {total // 3, 2 * total // 3})
        backends = [ending(strong_writes=k) for k in points[:WRITES] if 0 < k < total]
        backends += [ending(max(int(done.work * share), 1)) for share in SHARES]
        aborted = (first_difference(self.launch(self.earlier, backend)[0], few) for backend in backends)
        return second, next((text for text in aborted if text), "")


def launch_again(
    subject: InstanceUnderTest,
    trial: Trial,
    backend: Backend,
    shapes: tuple[LaunchShape, LaunchShape],
    schedules: tuple[int, ...],
) -> list[Finding]:
    """What the port does on scratch memory of its own earlier launches, where the original does well on its own."""
    scratch = [b.name for b in subject.case.buffers if b.role == "scratch" and b.init is not None]
    if not [n for n in scratch if n not in trial.point.null]:
        return []
    earlier, before = (
        make_inputs(subject.case, trial.point, subject.values, trial.scenario, trial.seed + k, trial.misaligned)
        for k in (1, 0)
    )
    of_original = _Side(subject, trial, backend, shapes[0], False, earlier, before, schedules).outcomes()
    of_port = _Side(subject, trial, backend, shapes[1], True, earlier, before, schedules).outcomes(not any(of_original))
    found: list[Finding] = []
    for what, original, port in zip(
        ("a second launch", "a launch after an aborted one"), of_original, of_port, strict=True
    ):
        if port and not original and not found:
            text = f"{what} on the same scratch ({', '.join(scratch)}): {port}; the original repeats its first results"
            found.append(Finding(codes.SCRATCH_DEPENDENT, "", text, str(trial)))
    return found
