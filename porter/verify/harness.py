"""Can a kernel be verified here at all? The original alone is built and launched once an instance, without any port.

Asked before a port exists that compiles, so that no work (and no money) goes into a port that nothing could judge.
"""

from __future__ import annotations

from porter.case.instances import instance_values
from porter.case.reader import Case
from porter.frontend.parse.source import ParsedUnit
from porter.model import KernelInfo, PorterError
from porter.verify.backends.by_name import emulator
from porter.verify.backends.interface import Backend, Build
from porter.verify.execute import InstanceUnderTest
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.symbols import require_values, symbols_of, with_declared_values
from porter.verify.launches.trials import Trial, choose_trials
from porter.verify.numerics.reference import load_reference

SEED = 1  # any launch will do
MOST = 60_000  # elements of a launch that is only to show that one can be made


def harness_fault(unit: ParsedUnit, info: KernelInfo, case: Case, arch: str, backend: Backend | None = None) -> str:
    """Why the original cannot be run, or "" when it can: what NVRTC, the reference or the backend says of it.

    One launch for each instance, at the smallest point that has something to write.
    """
    from porter.verify.original.build import build_original

    try:
        load_reference(case)
        wanted = [i.instance for i in case.instances]
        builds = build_original(unit.source, unit.options, info, wanted, ("ptx", "cubin"), unit=unit)
        require_values(case, unit, info, [(i, b.ptx, b.entry) for i, b in zip(wanted, builds, strict=True)])
        for instance, build in zip(case.instances, builds, strict=True):
            values = dict(instance_values(info, instance.instance))
            made = Build("original", build.ptx, build.entry, arch, build.cubin)
            whole = with_declared_values(case, build.ptx, build.entry)
            variables = symbols_of(case, build.ptx, build.entry)
            subject = InstanceUnderTest(whole, info, values, made, made, variables=variables)
            trials = [t for t in choose_trials(case, instance, values, SEED) if t.point.elements]
            if trials and trials[0].point.elements < MOST:
                error = _launch(subject, trials[0], backend or emulator())
                if error:
                    return f"the original: {error}"
    except PorterError as error:
        return f"the original: {error}"
    return ""


def _launch(subject: InstanceUnderTest, trial: Trial, backend: Backend) -> str:
    shape = subject.case.launch_at(trial.point, subject.values, backend.sm_count)
    if shape.is_empty:
        return ""
    buffers = make_inputs(subject.case, trial.point, subject.values, "normal", trial.seed)
    return subject.launch(backend, trial, shape, buffers, checks=False).error
