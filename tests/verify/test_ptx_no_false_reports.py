"""Correct kernels under many schedules: the sanitizer says nothing, of originals and of ports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from porter.case import LaunchShape, load_case
from porter.model import PorterError, Status
from porter.verify.backend import Argument, Build, RunResult
from porter.verify.buffers import HostBuffer
from porter.verify.emulator import EmulatorBackend
from porter.verify.nvrtc import require_nvrtc
from porter.verify.run import VerifyRequest, verify_port
from tests.emit.test_ports import ALL, ROOT, port

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

SEED = int(os.environ.get("PORTER_TEST_SEED", "11"))


class ManySchedules(EmulatorBackend):
    """Every checked launch is run under more schedules, on copies; what any of them reports is reported."""

    def __init__(self, schedules: int):
        self.schedules, self.launches = schedules, 0

    def run(
        self,
        build: Build,
        shape: LaunchShape,
        arguments: Sequence[Argument],
        schedule: int = 0,
        checks: bool = True,
        fill: int = 0,
    ) -> RunResult:
        found: dict[tuple[str, int], object] = {}
        for seed in range(1, self.schedules + 1) if checks else ():
            copies = [a.copy() if isinstance(a, HostBuffer) else a for a in arguments]
            result = super().run(build, shape, copies, SEED * 1000 + seed, True, fill)
            assert not result.error, result.error
            found |= {(v.kind, v.ptx_line): v for v in result.violations}
            self.launches += 1
        result = super().run(build, shape, arguments, schedule, checks, fill)
        found |= {(v.kind, v.ptx_line): v for v in result.violations}
        return RunResult(tuple(found.values()), result.seconds, result.instructions, result.error)  # type: ignore[arg-type]


def no_report(name: str, schedules: int, launches: int, folder: Path) -> None:
    module, info, _, source = port(name)
    file = folder / f"{name.split('/')[-1]}.py"
    file.write_text(module.text)
    case = load_case((ROOT / f"{name}.cu").with_suffix(".case.toml"))
    backend = ManySchedules(schedules)
    request = VerifyRequest(
        file, source, info, case, seed=SEED, launches=launches, budget=3600.0, backend=backend,
        checks=("numerics", "sanitizer"),
    )  # fmt: skip
    verdicts = {v.check: v for v in verify_port(request)}
    assert verdicts["sanitizer"].status is Status.PASS, verdicts["sanitizer"]
    assert backend.launches >= 2 * schedules


@pytest.mark.parametrize("name", ["norm/rms_norm", "softmax/softmax", "moe/moe_dispatch"])
def test_a_few_kernels_under_two_schedules(name: str, tmp_path: Path) -> None:
    no_report(name, 2, 2, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_reference_kernels_under_twenty_schedules(name: str, tmp_path: Path) -> None:
    no_report(name, 20, 8, tmp_path)
