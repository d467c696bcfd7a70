"""True ports of the reference kernels, and the verifier's answers about texts made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from porter.case.instances import instance_values
from porter.case.reader import Case, LaunchShape
from porter.config import PortConfig
from porter.model import Diagnostic, Verdict
from porter.pipeline.inputs import choose_kernels, find_case, parse
from porter.pipeline.stages import Run, translate
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.backends.interface import ORDINARY, Argument, Build, RunOptions, RunResult
from porter.verify.checks.entry.check import check_entry
from porter.verify.checks.honesty import check_honesty
from porter.verify.launches.buffers import HostBuffer
from porter.verify.run import VerifyRequest, verify_port
from tests.verify.checks.cheats.in_process import ask
from tests.verify.checks.cheats.text import Port

ROOT = Path(__file__).resolve().parents[4]
# Where running has to find the cheat: one kernel of every family, fused and in-place ones among them.
RUN = ("rms_norm", "fused_add_rms_norm", "softmax", "silu_and_mul", "per_token_fp8_quant", "dynamic_int8_quant",
       "rotary_embedding", "topk_softmax", "moe_sum", "embedding")  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """A kernel with its true port."""

    name: str
    port: Port
    case: Case
    request: VerifyRequest


def sources() -> list[Path]:
    return sorted((ROOT / "reference_kernels").rglob("*.cu"), key=lambda p: p.stem)


def subject(name: str) -> Subject:
    """The reference kernel of this name, ported afresh; not verified."""
    config = PortConfig(verify=False)
    unit = parse(next(p for p in sources() if p.stem == name), config)
    (info, *_) = choose_kernels(unit, config)
    case = find_case(unit, info, config)
    made = translate(unit, info, case, config, Run(info.name))
    request = VerifyRequest(Path("unset.py"), unit.source, info, case, ("sm_90a",), unit.options, unit)
    return Subject(name, Port(made.module.text), case, request)


def read(of: Subject, text: str) -> list[Diagnostic]:
    """What `honesty` says of a text."""
    values = [instance_values(of.request.info, i.instance) for i in of.case.instances]
    return check_honesty(text, Path(f"{of.name}.py"), values)


def run(of: Subject, text: str, folder: Path, seed: int | None = None, **changes: object) -> list[Verdict]:
    """The verifier's answers about a text; with fresh inputs unless a seed is given."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{of.name}.py"
    path.write_text(text, encoding="utf-8")
    return verify_port(replace(of.request, port_path=path, seed=seed, **changes))  # type: ignore[arg-type]


def called(of: Subject, text: str, folder: Path, only: Sequence[int] = ()) -> Verdict:
    """What `entry` says of a text, whose torch-facing functions are called in this process."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{of.name}.py"
    path.write_text(text, encoding="utf-8")
    return check_entry(path, text, of.case, of.request.info, only, ask)


class Spy(EmulatorBackend):
    """The emulator, with the first two bytes of an input of every launch noted down."""

    def __init__(self, buffer: str):
        super().__init__()
        self.buffer = buffer
        self.seen: set[int] = set()

    def run(
        self, build: Build, shape: LaunchShape, arguments: Sequence[Argument], options: RunOptions = ORDINARY
    ) -> RunResult:
        for argument in arguments:
            if isinstance(argument, HostBuffer) and argument.name == self.buffer and argument.raw.size:
                self.seen.add(int(np.ascontiguousarray(argument.raw).view(np.uint16).ravel()[0]))
        return super().run(build, shape, arguments, options)


def knows_the_seed(of: Subject, folder: Path, seed: int) -> str | None:
    """A port that is right for the inputs of one seed, known by how they begin, and writes zeros for all others."""
    from tests.verify.checks.cheats.catalogue import inputs, scaled_stores

    names = [n for n in inputs(of.case) if n in of.port.pointers]
    changed = scaled_stores(of.port, of.case)
    if changed is None or not names:
        return None
    spy = Spy(names[0])
    run(of, of.port.text, folder, seed, backend=spy)
    known = " | ".join(f"(first == {n})" for n in sorted(spy.seen))
    first = f"first = cutlass.Int32(cutlass.Uint16(lib.view({names[0]}, cutlass.Uint16)[0]))"
    return changed.at_kernel_start(first, f"known = cutlass.Int32(1) if {known} else cutlass.Int32(0)").text
