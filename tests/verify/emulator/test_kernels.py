"""Whole kernels as compilers emit them (tests/verify/emulator/ptx_samples), against float64 references, with every
check on."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from porter.verify import emulator as ptx
from tests.verify.emulator.ptx_micro import kernel, run, store32

SAMPLES = Path(__file__).parent / "ptx_samples"
ALL = ptx.Checks(shared_races=True, global_races=True)


@pytest.fixture(scope="module")
def kernels() -> ptx.Module:
    return ptx.load((SAMPLES / "kernels.ptx").read_text())


def to_bf16(x: np.ndarray) -> np.ndarray:
    u = np.asarray(x, np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(u: np.ndarray) -> np.ndarray:
    return (u.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def unwritten(shape: object, dtype: type) -> ptx.Buffer:
    return ptx.Buffer(np.full(shape, 0xEB, dtype), initialised=False)  # type: ignore[call-overload]


def rms_reference(x: np.ndarray, w: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps) * w


def close_to_bf16(got: np.ndarray, want: np.ndarray) -> bool:
    """Within one unit of bf16 everywhere, equal almost everywhere."""
    rounded = to_bf16(want)
    distance = np.abs(got.view(np.int16).astype(int) - rounded.view(np.int16).astype(int))
    return bool(distance.max() <= 1 and (distance > 0).mean() < 0.01)


@pytest.mark.parametrize(("tokens", "hidden"), [(1, 64), (5, 768), (16, 4096)])
def test_rms_norm_from_nvcc(kernels: ptx.Module, tokens: int, hidden: int) -> None:
    rng = np.random.default_rng(tokens)
    x, w = to_bf16(rng.standard_normal((tokens, hidden))), to_bf16(rng.standard_normal(hidden))
    out = unwritten((tokens, hidden), np.uint16)
    args = [out, ptx.Buffer(x, writable=False), ptx.Buffer(w, writable=False), hidden, 1e-6]
    result = ptx.launch(kernels, "rms_norm_bf16", tokens, 256, args, checks=ALL)
    assert result.ok, result.violations
    assert close_to_bf16(out.array, rms_reference(from_bf16(x), from_bf16(w), 1e-6))


def test_rms_norm_with_rows_that_do_not_divide(kernels: ptx.Module) -> None:
    x = np.zeros((3, 100), np.uint16)
    args = [unwritten((3, 100), np.uint16), ptx.Buffer(x, "x"), ptx.Buffer(x[0].copy(), "w"), 100, 1e-6]
    result = ptx.launch(kernels, "rms_norm_bf16", 3, 64, args, checks=ALL)
    assert result.violations[0].kind == "misaligned" and result.violations[0].buffer == "x"
    assert result.violations[0].loc is not None and result.violations[0].loc[0] == "kernels.cu"


def test_rms_norm_from_cutedsl() -> None:
    module = ptx.load((SAMPLES / "rms_cutedsl.ptx").read_text())
    rng = np.random.default_rng(5)
    x, w = to_bf16(rng.standard_normal((4, 1000))), to_bf16(rng.standard_normal(1000))
    out = unwritten((4, 1000), np.uint16)
    args = [ptx.Buffer(x), ptx.Buffer(w), out, 1000, np.float32(1e-5)]
    result = ptx.launch(module, "rms", 4, 256, args, smem_bytes=1024, checks=ALL)
    assert result.ok, result.violations
    assert close_to_bf16(out.array, rms_reference(from_bf16(x), from_bf16(w), 1e-5))
    with pytest.raises(ptx.LaunchError, match="256"):
        ptx.launch(module, "rms", 4, 128, args)


def test_softmax(kernels: ptx.Module) -> None:
    x = np.random.default_rng(2).standard_normal((6, 777)).astype(np.float32) * 5
    out = unwritten((6, 777), np.float32)
    result = ptx.launch(kernels, "softmax_f32", 6, 128, [out, ptx.Buffer(x), 777], smem_bytes=4 * 777, checks=ALL)
    assert result.ok, result.violations
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert (
        np.abs(out.array / (e / e.sum(axis=1, keepdims=True)) - 1).max() < 4e-6
    )  # rounding of x * log2(e), |x| up to 35


def test_softmax_with_too_little_shared_memory(kernels: ptx.Module) -> None:
    x = np.zeros((1, 777), np.float32)
    result = ptx.launch(
        kernels, "softmax_f32", 1, 128, [unwritten((1, 777), np.float32), ptx.Buffer(x), 777], smem_bytes=3000
    )
    assert ("out-of-bounds", "shared") in [(v.kind, v.space) for v in result.violations]


def test_fp8_quantisation(kernels: ptx.Module) -> None:
    x = (np.random.default_rng(4).standard_normal((5, 320)) * 3).astype(np.float16)
    out, scales = unwritten((5, 320), np.uint8), unwritten(5, np.float32)
    args = [out, scales, ptx.Buffer(x.view(np.uint16)), 320]
    result = ptx.launch(kernels, "quant_fp8", 5, 128, args, checks=ALL)
    assert result.ok, result.violations
    largest = np.abs(x.astype(np.float32)).max(axis=1)
    assert (scales.array == largest / np.float32(448)).all()
    codes = np.arange(256)
    sign, exponent, mantissa = np.where(codes & 128, -1.0, 1.0), (codes >> 3) & 15, codes & 7
    values = sign * np.where(exponent == 0, mantissa / 512, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))
    values[[127, 255]] = np.nan
    wanted = (x.astype(np.float32) / scales.array[:, None]).astype(np.float64)
    spacing = np.maximum(2.0 ** np.floor(np.log2(np.maximum(np.abs(wanted), 2.0**-6))) / 8, 2.0**-9)
    assert (np.abs(values[out.array] - wanted) <= spacing / 2 + 1e-9).all()


def test_moe_histogram(kernels: ptx.Module) -> None:
    ids = np.random.default_rng(7).integers(0, 64, 5000).astype(np.int32)
    counts = np.zeros(64, np.int32)
    result = ptx.launch(
        kernels, "moe_hist", 8, 256, [ptx.Buffer(counts), ptx.Buffer(ids), 5000], smem_bytes=256, checks=ALL
    )
    assert result.ok, result.violations
    assert (counts == np.bincount(ids, minlength=64)).all()


@pytest.mark.parametrize("blocks", [4, 132])
def test_grid_barrier(kernels: ptx.Module, blocks: int) -> None:
    data, out = (unwritten(blocks * 64, np.float32) for _ in range(2))
    args = [ptx.Buffer(np.zeros(1, np.uint32)), data, out]
    result = ptx.launch(kernels, "gbar", blocks, 64, args, checks=ALL)
    assert result.ok, result.violations
    assert (out.array == blocks * (blocks - 1) / 2).all()


def test_grid_barrier_with_too_few_resident_blocks(kernels: ptx.Module) -> None:
    args = [ptx.Buffer(np.zeros(1, np.uint32)), *(ptx.Buffer(np.zeros(132 * 32, np.float32)) for _ in range(2))]
    result = ptx.launch(kernels, "gbar", 132, 32, args, resident=128)
    assert result.deadlock
    assert result.seconds < 2
    (spinning,) = [v for v in result.violations if v.message.startswith("128 threads spin")]
    assert spinning.opcode.startswith("ld.volatile") and spinning.count == 128


def test_cooperative_groups_grid_sync(kernels: ptx.Module) -> None:
    n = 16 * 64
    data = np.zeros(n, np.int32)
    result = ptx.launch(kernels, "grid_sync", 16, 64, [ptx.Buffer(data), n], cooperative=True, checks=ALL)
    assert result.ok, result.violations
    i = np.arange(n)
    assert (data == i + (i + n // 2) % n).all()


def test_cluster_reduction(kernels: ptx.Module) -> None:
    out = unwritten(8, np.float32)
    result = ptx.launch(kernels, "cluster_sum", 8, 32, [out], cluster=(4, 1, 1), checks=ALL)
    assert result.ok, result.violations
    assert (out.array == 10).all()


def test_printf(kernels: ptx.Module) -> None:
    result = ptx.launch(kernels, "say", 1, 32, [3, 2.5])
    assert result.stdout == "".join(f"t {t} 2.500000 x\n" for t in range(3))


def test_assert(kernels: ptx.Module) -> None:
    result = ptx.launch(kernels, "checked", 1, 32, [ptx.Buffer(np.arange(32, dtype=np.int32)), 20])
    (violation,) = result.violations
    assert violation.kind == "assert" and violation.count == 12 and violation.thread == (20, 0, 0)
    assert "x[threadIdx.x] < n" in violation.message


def test_device_function_with_libdevice_sine(kernels: ptx.Module) -> None:
    out = unwritten(32, np.float32)
    assert ptx.launch(kernels, "callee", 1, 32, [out, np.float32(0.5)]).ok
    wanted = [sum(np.sin(0.5 * t + i) for i in range(t & 3)) for t in range(32)]
    assert np.abs(out.array - wanted).max() < 2e-7


def test_switch_struct_and_local_array(kernels: ptx.Module) -> None:
    out = unwritten(32, np.int32)
    assert ptx.launch(kernels, "sw", 1, 32, [out, struct.pack("<i3fq", 5, 1.5, 2.5, 3.5, 100)]).ok
    chosen = [5, 2, 7, 100, 45, 11, 2] + [-1] * 25
    assert out.array.tolist() == [chosen[t] * (t * 5 & 15) for t in range(32)]


def test_counts(kernels: ptx.Module) -> None:
    out = unwritten((4, 512), np.uint16)
    x = np.zeros((4, 512), np.uint16)
    result = ptx.launch(kernels, "rms_norm_bf16", 4, 64, [out, ptx.Buffer(x), ptx.Buffer(x[0].copy()), 512, 1e-6])
    counts = result.counts["by_kind"]
    assert counts["store.global"] == 4 * 64
    assert counts["load.global"] == 3 * 4 * 64
    assert counts["barrier"] == 4 * 64
    assert result.counts["barriers"] == 4
    assert result.counts["thread_instructions"] == sum(counts.values())


def test_perturbed_approximations_move_the_result_a_little(kernels: ptx.Module) -> None:
    x = np.random.default_rng(2).standard_normal((2, 512)).astype(np.float32)
    outs = []
    for direction in (-1, 0, 1):
        out = unwritten((2, 512), np.float32)
        perturb = ptx.Perturbation(direction)
        ptx.launch(kernels, "softmax_f32", 2, 128, [out, ptx.Buffer(x), 512], smem_bytes=2048, perturb=perturb)
        outs.append(out.array.astype(np.float64))
    assert (outs[0] != outs[1]).any() and (outs[2] != outs[1]).any()
    assert np.abs(outs[0] / outs[2] - 1).max() < 1e-5


def test_sectors_and_bank_conflicts(kernels: ptx.Module) -> None:
    out, x = unwritten((2, 512), np.uint16), np.zeros((2, 512), np.uint16)
    args = [out, ptx.Buffer(x), ptx.Buffer(x[0].copy()), 512, 1e-6]
    counts = ptx.launch(kernels, "rms_norm_bf16", 2, 64, args, checks=ptx.Checks(counts=True)).counts["traffic"]
    # 64 lanes read 16 bytes each, 3 times a row: 1024 bytes are 32 sectors
    assert counts["global.load.sectors"] == counts["global.load.ideal_sectors"] == 2 * 3 * 32
    assert counts["global.store.sectors"] == 2 * 32
    assert counts["shared.store.wavefronts"] == counts["shared.store.accesses"]


def test_strided_accesses_cost_sectors_and_banks() -> None:
    text = kernel(
        ".shared .align 4 .b32 s[1024]; mov.u32 %r3, s; shl.b32 %r4, %r0, 7; add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], %r0;\n"
        "mul.wide.u32 %rd2, %r0, 128; add.u64 %rd3, %rd0, %rd2; st.global.u32 [%rd3], %r0;"
    )
    result = run(text, np.zeros(1024, np.uint32), checks=ptx.Checks(counts=True), parity=False)
    counts = result.counts["traffic"]
    assert counts["shared.store.wavefronts"] == 32  # all lanes in one bank
    assert (counts["global.store.sectors"], counts["global.store.ideal_sectors"]) == (32, 4)


@pytest.mark.parametrize(
    ("instruction", "x", "move"),
    [
        ("ex2.approx.f32", 1.5, 2.0**1.5 * 2.0**-22),
        ("lg2.approx.f32", 1.25, 2.0**-22),  # absolute within (0.5, 2)
        ("lg2.approx.f32", 2.0**20, 20 * 2.0**-22),  # relative elsewhere
        ("sin.approx.f32", 1.0, 2.0**-20.5),
        ("sin.approx.f32", 100.0, 2.0**-14.7),
        ("tanh.approx.f32", 0.5, np.tanh(0.5) * 2.0**-11),
    ],
)
def test_each_approximation_is_moved_by_the_bound_of_the_isa(instruction: str, x: float, move: float) -> None:
    text = kernel(f"mov.f32 %f0, {float_literal(x)}; {instruction} %f1, %f0; mov.b32 %r3, %f1;" + store32("%r3"))
    found = []
    for direction in (0, 1):
        out = np.zeros(32, np.uint32)
        run(text, out, perturb=ptx.Perturbation(direction))
        found.append(float(out.view(np.float32)[0]))
    assert found[1] - found[0] == pytest.approx(move, rel=0.35)  # of which half a unit is rounding


def float_literal(x: float) -> str:
    return f"0f{int(np.float32(x).view(np.uint32)):08X}"
