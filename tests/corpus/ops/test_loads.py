"""Where the corpus reads: behind `griddepcontrol.wait`, and what it asks for in L2 within its arguments."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("cutlass")
pytest.importorskip("torch")

import torch

from porter import corpus
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS
from porter.corpus.runtime.specialisation import compiled
from porter.verify import emulator as ptx
from tests.corpus import emulated

# With the scale of all numbers, which takes a division, it reads those again that registers do not keep.
READS_AGAIN = {"dynamic_scaled_fp8_quant"}


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_no_load_may_move_ahead_of_the_wait(name):
    """No value is used that was there before the wait, but for guesses by `peek`; and there are no loads that ptxas may
    take for read-only (`.nc`), which it moves, whatever their place in the PTX."""
    workload = WORKLOADS[name]
    arguments = workload.make(16, torch.bfloat16, "meta", **workload.dims[0])
    kernel, _ = OPS[name].plan(Device("sm_90a", 132), *arguments)
    text = compiled(kernel, "sm_90a", "ptx").ptx
    assert not re.search(r"ld\.global(\.\w+)*\.nc", text)
    before, wait, after = text.partition("griddepcontrol.wait")
    memory = r"\b(?:ld|st|red|atom)(?:\.\w+)*\.global\S*"
    assert wait and re.search(memory, after)
    assert all(access.startswith("ld.relaxed.gpu.global") for access in re.findall(memory, before))
    divisions = [m.start() for m in re.finditer(r"\b(rcp|div|sqrt)\.rn\.f32", after)]  # branches: they hold loads back
    loads = [m.start() for m in re.finditer(r"\bld(?:\.\w+)*\.global", after)]
    last = loads[0] if name in READS_AGAIN else loads[-1]
    assert not divisions or last < divisions[0]


def bf16(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).bfloat16()


def packed_heads():
    qkv = bf16(70, 12 * 128)
    return qkv[:, : 8 * 128], qkv[:, 8 * 128 : 10 * 128], bf16(128), bf16(128), 1e-6


ASKED = {
    "rms_norm": (lambda: (bf16(9, 1024), bf16(9, 1024), bf16(1024), 1e-6), {"prefetch_distance": 4, "prefetch": "all"}),
    "rms_norm_silu": (
        lambda: (bf16(9, 1024), bf16(9, 1024), bf16(1024), 1e-6), {"prefetch": "all", "prefetch_blocks": 7}
    ),
    "fused_add_rms_norm": (
        lambda: (bf16(9, 1024), bf16(9, 1024), bf16(1024), 1e-6), {"prefetch_distance": 4, "prefetch": "all"}
    ),
    "rms_norm_static_fp8_quant": (
        lambda: (torch.empty(9, 1024, dtype=torch.float8_e4m3fn), bf16(9, 1024), bf16(1024), torch.ones(1), 1e-6),
        {"prefetch_distance": 4, "prefetch": "rows", "prefetch_blocks": 5},
    ),
    "qk_norm": (packed_heads, {"prefetch_distance": 3, "prefetch": True, "prefetch_blocks": 20}),
    "softmax": (
        lambda: (bf16(9, 4096), bf16(9, 4096)),
        {"cluster": 2, "threads": 64, "prefetch_distance": 4, "prefetch": True},
    ),
}  # fmt: skip
ASK = re.compile(r"cp\.async\.bulk\.prefetch\.L2\.global \[(%rd\d+)\], ([%\w]+);")


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_for_lies_within_the_arguments(name, monkeypatch):
    """Each prefetch becomes loads of its first and last byte, whose addresses the emulator checks."""
    load, asked = ptx.load, []

    def loaded(text):
        asked.extend(ASK.findall(text))
        ends = r"ld.global.b8 byte, [\1]; cvt.u64.u32 at, \2; add.s64 at, at, \1; @p ld.global.b8 byte, [at+-1]; }"
        text = re.sub(r"@p " + ASK.pattern + r" \}", "@p " + ends, text)
        return load(text.replace("{ .reg .pred p; setp", "{ .reg .pred p; .reg .b16 byte; .reg .b64 at; setp"))

    monkeypatch.setattr(ptx, "load", loaded)
    monkeypatch.setattr(emulated, "CHECKS", ptx.Checks())  # other blocks may write there: no value is read
    make, choice = ASKED[name]
    with tuning.forced(choice):
        emulated.run(getattr(corpus, name), *make(), sms=2)
    assert len(asked) >= 2
