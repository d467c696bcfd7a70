"""What the tables of ops rest on: compiled functions refuse arguments that they were not made for, before a launch.

The real ones are called here with host memory that claims to be a GPU's.
"""

from __future__ import annotations

from itertools import combinations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")
pytest.importorskip("tvm_ffi")

import torch

from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS
from porter.corpus.runtime.specialisation import loaded
from porter.corpus.tune import without_memory
from tests.corpus.runtime.fake_gpu import launch

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU would be given host memory")


# Buffers for as many entries as there may be: the plan, which knows the shapes, checks that they are long enough.
ANY_LENGTH = {"moe_align_block_size", "batched_moe_align_block_size", "moe_permute"}


def others(t, declared):
    """Tensors that a kernel with an argument declared for t does not take, and None."""
    yield "dtype", t.to(torch.float64)
    yield "length", t[..., :-1]
    yield "dimensions", t[None]
    yield "None", None
    if declared.align > t.element_size():
        yield "address", _placed(t, 1, t.stride())
    if declared.multiple > 1 and declared.stride[0] is None:
        yield "stride", _placed(t, 0, (t.stride(0) + 1, *t.stride()[1:]))


def _placed(t, offset, strides):
    """A tensor of t's kind, `offset` elements behind an aligned address."""
    base = torch.zeros(2 * t.numel() + 128, dtype=t.dtype)
    start = -base.data_ptr() // t.element_size() % 64
    return torch.as_strided(base, t.shape, strides, start + offset)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_compiled_functions_refuse_other_arguments(name):
    op, device = OPS[name], Device("sm_90a", 132, "NVIDIA H200")
    args = op.bind(WORKLOADS[name].make(16, torch.bfloat16, "cpu", **WORKLOADS[name].dims[0]), {})
    kernel, bind = op.plan(device, *map(without_memory, args))
    kept = []
    bind(lambda *passed: kept.append(passed))(*args)
    function, passed = loaded(kernel, device.arch), list(kept[0])
    assert launch(function, passed) == "launched"
    for i, (a, declared) in enumerate(zip(passed, kernel.arguments(), strict=False)):
        wrong = [("tensor for None", torch.zeros(1))] if a is None else []
        if torch.is_tensor(a):
            wrong = list(others(a, declared))
        for what, other in wrong:
            if what == "length" and name in ANY_LENGTH:
                continue
            assert launch(function, [*passed[:i], other, *passed[i + 1 :]]) != "launched", (i, what)
    of_op = {n: a.data_ptr() for n, a in zip(op.signature.parameters, args, strict=True) if torch.is_tensor(a)}
    of_kernel = {n: next((i for i, a in enumerate(passed) if torch.is_tensor(a) and a.data_ptr() == p), None)
                 for n, p in of_op.items()}  # fmt: skip
    for a, b in combinations(of_op, 2):
        i, j = of_kernel[a], of_kernel[b]
        if a in op.written or b in op.written:
            assert i is not None and j is not None, (a, b)
            refused = launch(function, overlapping(passed, i, j))
            assert "overlap" in refused, (a, b, refused)
            places = [list(op.signature.parameters).index(n) for n in (a, b)]
            with pytest.raises(ValueError, match=f"{name}: {a} and {b} overlap"):
                getattr(torch.ops.porter, name)(*overlapping(args, *places))
        elif i is not None and j is not None:
            assert "overlap" not in launch(function, overlapping(passed, i, j)), (a, b)
    for b in op.in_place:
        i, j = of_kernel[op.written[0]], of_kernel[b]
        assert launch(function, [passed[j] if k == i else a for k, a in enumerate(passed)]) == "launched"


def overlapping(args, first, second):
    """The arguments with these two tensors in one piece of memory, the second 64 bytes (or an element) into the first
    or, if that is no longer, at its start."""
    a, b = args[first], args[second]
    step = 64 if a.nbytes > 64 else 0
    bytes_ = step + 2 * (a.untyped_storage().nbytes() + b.untyped_storage().nbytes()) + 128
    base = torch.zeros(bytes_, dtype=torch.uint8)
    start = -base.data_ptr() % 64
    made = list(args)
    for at, t, skip in ((first, a, 0), (second, b, step)):
        whole = base[start + skip :][: t.untyped_storage().nbytes()].view(t.dtype)
        made[at] = torch.as_strided(whole, t.shape, t.stride())
    return made
