"""Every operation against results recorded on an H200: exact ones bit for bit, approximate ones by their bound."""

from __future__ import annotations

import numpy as np
import pytest

from porter.verify import emulator as ptx
from tests.verify.emulator.golden.record import FILE, KEPT, digest
from tests.verify.emulator.golden.specs import COUNT, RAW, WIDTH, Spec, all_specs, module_text, symbol

SPECS = all_specs()


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    return dict(np.load(FILE))


@pytest.fixture(scope="module")
def module() -> ptx.Module:
    return ptx.load(module_text(SPECS))


def run(module: ptx.Module, spec: Spec, backend: str = "numpy") -> np.ndarray:
    out = np.zeros(COUNT, RAW[WIDTH[spec.output]])
    buffers = [ptx.Buffer(v) for v in spec.values()]
    result = ptx.launch(
        module, f"k_{symbol(spec.name)}", COUNT // 256, 256, [*buffers, ptx.Buffer(out)], backend=backend
    )
    assert not result.violations, result.violations
    return out


def as_float(t: str, raw: np.ndarray) -> np.ndarray:
    if t == "f32":
        return raw.view(np.float32).astype(np.float64)
    if t == "f64":
        return raw.view(np.float64)
    if t.startswith("f16"):
        return raw.view(np.float16).astype(np.float64)
    return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)


GROUPS = sorted({s.name.split(".")[0].split(" ")[0] for s in SPECS if not s.approximate})


@pytest.mark.parametrize("group", GROUPS)
def test_exact_operations_equal_hardware(group: str, golden: dict[str, np.ndarray], module: ptx.Module) -> None:
    wrong = []
    count = 0
    for spec in SPECS:
        if spec.approximate or spec.name.split(".")[0].split(" ")[0] != group:
            continue
        count += 1
        got = run(module, spec)
        first = np.flatnonzero(got[:KEPT] != golden[spec.name])
        if first.size:
            i = first[0]
            values = [hex(int(v[i])) for v in spec.values()]
            wrong.append(f"{spec.name}{values}: {int(got[i]):#x}, hardware {int(golden[spec.name][i]):#x}")
        elif not np.array_equal(digest(got), golden["sha256 " + spec.name]):
            wrong.append(f"{spec.name}: differs after the first {KEPT} results")
    assert not wrong, "\n".join(wrong)
    assert count


# how far a correctly rounded result may lie from hardware's: (relative, absolute), the larger allowance counts.
# The ISA's bound of the instruction plus half a unit of the result type.
ALLOWED = {
    "div": (2.0**-22 + 2.0**-24, 2.0**-148),
    "rcp": (2.0**-23 + 2.0**-24, 2.0**-148),
    "sqrt": (2.0**-23 + 2.0**-24, 0.0),
    "rsqrt": (2.0**-22.9 + 2.0**-24, 0.0),
    "ex2": (2.0**-22 + 2.0**-24, 2.0**-148),
    "lg2": (2.0**-22, 2.0**-22),
    "sin": (0.0, 2.0**-20.5),
    "cos": (0.0, 2.0**-20.5),
    "tanh": (2.0**-11, 0.0),
    "tanh16": (0.0, 2.0**-10.987 + 2.0**-12),
    "ex2_f16": (2.0**-9.9, 2.0**-23),
    "ex2_bf16": (2.0**-7, 0.0),
    "rcp64": (2.0**-20, 0.0),
    "rsqrt64": (2.0**-20, 0.0),
}


@pytest.mark.parametrize("spec", [s for s in SPECS if s.approximate], ids=lambda s: s.name)
def test_approximate_operations_lie_within_the_bound(
    spec: Spec, golden: dict[str, np.ndarray], module: ptx.Module
) -> None:
    with np.errstate(all="ignore"):
        got, want = as_float(spec.output, run(module, spec)), as_float(spec.output, golden[spec.name])
        finite = np.isfinite(want)
        x = as_float(spec.inputs[0], spec.values()[0])
        relative, absolute = ALLOWED[spec.approximate]
        if spec.approximate == "tanh16" and spec.output.startswith("bf16"):
            absolute = 2.0**-8 + 2.0**-9
        check = finite
        if spec.approximate in ("sin", "cos"):
            check = finite & (np.abs(x) <= 2 * np.pi)  # farther out the ISA allows more, or promises nothing
        else:
            assert np.array_equal(np.isnan(got), np.isnan(want))
            assert np.array_equal(np.isinf(got), np.isinf(want))
        error = np.abs(got - want)[check]
        allowed = np.maximum(relative * np.abs(want[check]), absolute)
    assert (error <= allowed).all()
    assert check.sum() > 30


def test_the_record_is_complete(golden: dict[str, np.ndarray]) -> None:
    assert "H200" in str(golden["machine"])
    assert len(SPECS) >= 300
    assert all(s.name in golden for s in SPECS)
