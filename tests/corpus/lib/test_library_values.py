"""What functions of porter.corpus.lib compute, in the emulator, and the instructions that the newest machines have."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter.corpus.runtime.specialisation import compiled
from tests.corpus.emulated import launch
from tests.corpus.lib.library_kernels import Handover, OnFloats, Reduction, TopOfGroup, TwoPhases, WideCopy

E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
WAYS = [("sm_90a", False), ("sm_100a", False), ("sm_100a", True)]


def words_of(kernel, x, arch):
    """The kernel's words for floats, any number of them."""
    x = x.float().reshape(-1)
    rows = torch.zeros(-(-len(x) // 8), 8)
    rows.view(-1)[: len(x)] = x
    out = torch.zeros(rows.shape, dtype=torch.int32).view(torch.uint32)
    launch(kernel, (out, rows, -(-len(rows) // kernel.threads)), arch)
    return out.view(torch.int32)


def near_values(values):
    """Values, the midpoints between them, and the neighbours of all of these."""
    points = torch.cat([values, (values[1:] + values[:-1]) / 2])
    far = torch.tensor([1e30, -float("inf"), float("inf"), 5e-39, float("nan")])
    beside = [torch.nextafter(points, torch.tensor(end)) for end in (1e9, -1e9)]
    points = torch.cat([points, *beside])
    return torch.cat([points, -points, far])


@pytest.mark.parametrize(("arch", "hardware"), WAYS)
def test_e2m1(arch, hardware):
    x = torch.cat([near_values(E2M1), torch.randn(200, generator=torch.Generator().manual_seed(1)) * 3])
    words = words_of(OnFloats("e2m1", hardware), x, arch)[:, 0].long() & 0xFFFFFFFF
    codes = (words[:, None] >> (4 * torch.arange(8))) & 15
    distance = (E2M1 - x.abs().clamp(max=6)[:, None]).abs()
    best = distance.min(-1, keepdim=True).values
    ties = distance == best
    even = torch.where(ties & (torch.arange(8) % 2 == 0), torch.arange(8), 99).amin(-1)
    nearest = torch.where(ties.sum(-1) == 1, distance.argmin(-1), even)
    want = torch.where(x.isnan(), 7, nearest | (x.signbit().long() << 3))
    assert torch.equal(codes.reshape(-1)[: len(x)], want)
    every = torch.tensor([0x76543210, 0xFEDCBA98], dtype=torch.int64).to(torch.int32).view(torch.float32)
    rows = torch.stack([every, *[torch.zeros(2)] * 7], -1)
    back = words_of(OnFloats("from e2m1", hardware), rows, arch).view(torch.float32)
    assert torch.equal(back, torch.stack([E2M1, -E2M1])) and back[1, 0].signbit()


@pytest.mark.parametrize(("arch", "hardware"), WAYS)
def test_e8m0(arch, hardware):
    powers = 2.0 ** torch.arange(-149, 128, dtype=torch.float64)
    others = torch.tensor([0.0, 3e38, float("inf"), float("nan")])
    x = torch.cat([powers, powers * 1.5, powers * (1 + 2.0**-23), others])
    x = x.float()
    up = words_of(OnFloats("e8m0 up", hardware), x, arch).view(-1)[: len(x)]
    down = words_of(OnFloats("e8m0 down", hardware), x, arch).view(-1)[: len(x)]
    exponent = torch.from_numpy(np.log2(np.maximum(x.double().numpy(), 2.0**-149)))
    assert torch.equal(up, torch.where(x.isnan(), 255, (exponent.ceil() + 127).clamp(0, 254)).int())
    assert torch.equal(down, torch.where(x.isnan(), 255, (exponent.floor() + 127).clamp(0, 254)).int())
    codes = torch.arange(256, dtype=torch.int32)
    back = words_of(OnFloats("from e8m0", hardware), codes.view(torch.float32), arch).view(torch.float32).view(-1)
    assert torch.equal(back[:255], 2.0 ** (torch.arange(255, dtype=torch.float64) - 127).float()) and back[255].isnan()


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_fp8(name):
    kind = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[name]
    codes = torch.arange(256, dtype=torch.uint8)
    rows = torch.zeros(64, 8)
    rows[:, 0] = codes.view(torch.int32).view(torch.float32)
    back = words_of(OnFloats(f"from {name}"), rows, "sm_90a").view(torch.float32)[:, :4].reshape(-1)
    want = codes.view(kind).float()
    assert torch.equal(back.isnan(), want.isnan()) and torch.equal(back[~want.isnan()], want[~want.isnan()])
    if name == "e5m2":
        x = torch.randn(64, 8, generator=torch.Generator().manual_seed(1)) * 100
        x[0, :2] = torch.tensor([1e9, -1e9])
        found = words_of(OnFloats("e5m2"), x, "sm_90a")[:, :2].contiguous().view(torch.uint8)
        assert torch.equal(found.view(kind).float(), x.clamp(-57344, 57344).to(kind).float())


@pytest.mark.parametrize("op", ["sum", "max", "min", "absmax"])
@pytest.mark.parametrize("width", [1, 4, 16, 32])
def test_reductions_of_groups_of_lanes(op, width):
    x = torch.randn(128, generator=torch.Generator().manual_seed(1))
    out = torch.zeros(128)
    launch(Reduction(op, width), (out, x, 2), "sm_90a")
    check_reduction(op, out.view(-1, width), x.view(-1, width))


@pytest.mark.parametrize("op", ["sum", "max", "min", "absmax"])
@pytest.mark.parametrize(("threads", "blocks"), [(32, 2), (64, 8), (256, 8)])
def test_reductions_of_clusters(op, threads, blocks):
    x = torch.randn(2 * threads * blocks, generator=torch.Generator().manual_seed(2))
    out = torch.zeros_like(x)
    launch(Reduction(op, 0, threads, blocks), (out, x, 2 * blocks), "sm_90a")
    check_reduction(op, out.view(2, -1), x.view(2, -1))


def check_reduction(op, out, x):
    assert (out == out[:, :1]).all()  # the same bits in every thread
    want = {"sum": x.double().sum(-1), "max": x.amax(-1), "min": x.amin(-1), "absmax": x.abs().amax(-1)}[op]
    if op == "sum":
        torch.testing.assert_close(out[:, 0].double(), want, rtol=1e-5, atol=1e-5)
    else:
        assert torch.equal(out[:, 0], want)


@pytest.mark.parametrize(("k", "width", "each"), [(1, 32, 1), (2, 8, 1), (4, 16, 3), (8, 32, 4), (3, 4, 2)])
def test_largest_of_groups_of_lanes(k, width, each):
    """Ties go to the lower index; NaN is the largest, zeros are equal."""
    x = (torch.randn(9, width * each, generator=torch.Generator().manual_seed(k)) * 2).round()
    x[0], x[1, 2], x[2, ::2] = 1.0, float("nan"), -0.0
    out = torch.zeros(9, k, dtype=torch.int32)
    kernel = TopOfGroup(k, width, each)
    launch(kernel, (out, x, -(-9 * width // kernel.threads)), "sm_90a")
    assert torch.equal(out.long(), x.sort(dim=-1, descending=True, stable=True).indices[:, :k])


def test_blocks_of_a_cooperative_launch_meet():
    out, shared = torch.zeros(7, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    for turn in (1, 2):  # the counter needs no reset
        launch(TwoPhases(), (out, shared, 7), "sm_90a", cooperative=True)
        assert (out == 28 * turn).all() and shared[0] == 7 * turn


@pytest.mark.parametrize("scope", ["gpu", "sys"])
def test_flags_are_barriers_for_the_compiler_too(scope):
    kernel = Handover(scope)
    data, flags = torch.zeros(4, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    launch(kernel, (data, flags, 2), "sm_90a")
    assert data.tolist() == [7, 5, 7, 0] and flags.tolist() == [2, 3]
    ptx = compiled(kernel, "sm_90a", "ptx").ptx
    assert len(re.findall(r"st\.global\.b32", ptx)) == 4 and len(re.findall(r"ld\.global\.b32", ptx)) == 2
    assert f"st.release.{scope}.global.b32" in ptx and f"ld.acquire.{scope}.global.b32" in ptx


@pytest.mark.parametrize("arch", ["sm_100a"])
def test_accesses_of_32_bytes(arch):
    x = torch.arange(45 * 8, dtype=torch.int32).view(torch.uint32).reshape(45, 8)
    out = torch.zeros(45, 8, dtype=torch.int32).view(torch.uint32)
    launch(WideCopy(), (out, x, 2), arch)
    assert torch.equal(out.view(torch.int32), x.view(torch.int32))


@pytest.mark.parametrize(
    ("kernel", "arch", "there", "absent"),
    [
        (WideCopy(), "sm_100a", r"ld\.global\.L1::no_allocate\.v8\.b32", r"v4\.b32"),
        (WideCopy(), "sm_100a", r"st\.global\.v8\.b32", r"v4\.b32"),
        (OnFloats("e2m1", True), "sm_100a", r"cvt\.rn\.satfinite\.e2m1x2\.f32", r"add\.rn\.f32"),
        (OnFloats("e2m1"), "sm_90a", r"add\.rn\.f32", r"\.e2m1"),
        (OnFloats("from e2m1", True), "sm_100a", r"cvt\.rn\.f16x2\.e2m1x2", r"mul\.rn\.f32"),
        (OnFloats("from e2m1"), "sm_90a", r"mul\.rn\.f32", r"\.e2m1"),
        (OnFloats("e8m0 up", True), "sm_100a", r"cvt\.rp\.satfinite\.ue8m0x2\.f32", r"min\."),
        (OnFloats("e8m0 down", True), "sm_100a", r"cvt\.rz\.satfinite\.ue8m0x2\.f32", r"min\."),
        (OnFloats("e8m0 up"), "sm_90a", r"min\.[us]32", r"\.ue8m0"),
        (OnFloats("from e8m0", True), "sm_100a", r"cvt\.rn\.bf16x2\.ue8m0x2", r"selp"),
        (OnFloats("from e8m0"), "sm_90a", r"selp", r"\.ue8m0"),
        (OnFloats("e5m2"), "sm_90a", r"cvt\.rn\.satfinite\.e5m2x2\.f32", r"e4m3"),
        (OnFloats("from e4m3"), "sm_90a", r"cvt\.rn\.f16x2\.e4m3x2", r"e5m2"),
        (OnFloats("from e5m2"), "sm_90a", r"cvt\.rn\.f16x2\.e5m2x2", r"e4m3"),
        (Reduction("absmax", 16), "sm_90a", r"shfl\.sync\.bfly\.b32", r"bar\.sync"),
        (Reduction("sum", 0, 64, 4), "sm_90a", r"mapa\.u64", r"bar\.sync"),
        (TopOfGroup(2, 8, 1), "sm_90a", r"shfl\.sync\.bfly\.b32", r"redux"),
        (TopOfGroup(2, 32, 1), "sm_90a", r"redux\.sync\.max\.u32", r"shfl"),
        (TwoPhases(), "sm_90a", r"ld\.acquire\.gpu\.global\.b32", r"\.local"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_instructions(kernel, arch, there, absent):
    body = compiled(kernel, arch, "ptx").ptx.partition("\n{")[2]  # behind the entry's name, which says what it is
    lines = [line for line in body.splitlines() if not line.lstrip().startswith(("//", ".file"))]
    assert re.search(there, "\n".join(lines)) and not re.search(absent, "\n".join(lines))
