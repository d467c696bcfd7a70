"""From a call to its launcher: what the two tables of an op hold, and that the compiled functions refuse other calls.

There is no GPU here. Stand-ins are CPU tensors that say they are on one, and a launch function that checks its
arguments against the kernel's declaration.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from porter import corpus
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime import device, ops
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.dtypes import torch_type
from porter.corpus.runtime.signature import Tensor

EPS = 1e-6


class OnGpu(torch.Tensor):
    """A tensor in host memory that says it is in a GPU's."""

    is_cuda = True

    def get_device(self):
        return 0


def gpu(t):
    return t.as_subclass(OnGpu)


def rows(tokens, length, dtype=torch.bfloat16, stride=None):
    stride = stride or length
    base = torch.zeros(tokens * stride + 64, dtype=dtype)
    start = -base.data_ptr() // base.element_size() % 32  # of 32 elements: a multiple of 32 bytes at least
    return gpu(torch.as_strided(base, (tokens, length), (stride, 1), start))


def aligned(t):
    """Zeros like t, with its strides, at a multiple of 32 bytes."""
    base = torch.zeros(t.untyped_storage().size() + 64, dtype=torch.uint8)
    start = -base.data_ptr() % 32
    copy = base[start : start + t.untyped_storage().size()].view(t.dtype)
    return gpu(torch.as_strided(copy, t.shape, t.stride(), t.storage_offset()))


def checked(kernel, launches):
    """What the compiled function does with its arguments, short of launching."""
    declared = kernel.arguments()

    def launch(*args):
        lengths = {}
        for a, want in zip(args, declared, strict=False):
            if not isinstance(want, Tensor):
                if (a is None) != (want is None):
                    raise TypeError("None")
                continue
            if a is None or a.dtype != torch_type(want.dtype) or a.dim() != len(want.shape):
                raise ValueError("dtype or dimensions")
            for n, s, stride, fixed in zip(a.shape, want.shape, a.stride(), want.stride, strict=True):
                if n != (lengths.setdefault(s, n) if isinstance(s, str) else s):
                    raise ValueError("shape")
                if stride % want.multiple if fixed is None else stride != fixed:
                    raise ValueError("stride")
            if a.data_ptr() % want.align:
                raise ValueError("alignment")
        launches.append((kernel, args[-1]))

    return launch


@pytest.fixture
def launches(monkeypatch):
    found, made = [], {}
    monkeypatch.setattr(ops, "loaded", lambda kernel, arch: made.setdefault(kernel, checked(kernel, found)))
    monkeypatch.setattr(ops, "device_of", lambda t: Device("sm_90a", 132, "NVIDIA H200"))
    monkeypatch.setattr(ops, "one_kind_of_device", lambda: True)
    ops.clear_plans()
    yield found
    ops.clear_plans()


def test_a_call_is_planned_once(launches, monkeypatch):
    x, w = rows(16, 4096), rows(1, 4096)[0]
    corpus.rms_norm(x, x, w, EPS)
    monkeypatch.setattr(ops.Op, "slow_path", lambda *_: pytest.fail("not in the table"))
    corpus.rms_norm(rows(16, 4096), rows(16, 4096, stride=8192), w, 1e-5)
    assert len(launches) == 2 and launches[0] == launches[1]


def test_calls_that_an_entry_refuses_find_their_own_kernel(launches):
    x, w = rows(16, 4096), rows(1, 4096)[0]
    unaligned = gpu(torch.zeros(16 * 4096 + 32).bfloat16()[1:][: 16 * 4096].view(16, 4096))
    calls = [
        (x, x, w, EPS),
        (unaligned, unaligned, w, EPS),
        (rows(16, 4096, torch.float16),) * 2 + (rows(1, 4096, torch.float16)[0], EPS),
        (x, x, None, EPS),
        (x, x, rows(1, 4096, torch.float32)[0], EPS),
    ]
    for _ in range(3):
        for call in calls:
            corpus.rms_norm(*call)
    kernels = [kernel for kernel, _ in launches]
    assert len(set(kernels)) == len(calls) and kernels == kernels[: len(calls)] * 3


def test_shapes_of_as_many_bytes_are_told_apart(launches, monkeypatch):
    """Heads of q and whole rows, say: once one has refused the other, both are looked up by their shapes."""
    calls = [(rows(32, 128),) * 2, (rows(1, 4096),) * 2, (rows(32, 128, torch.float16),) * 2]
    for _ in range(3):
        for out, x in calls:
            corpus.rms_norm(out, x, rows(1, x.shape[1], x.dtype)[0], EPS)
    op = ops.OPS["rms_norm"]
    kinds = [(kernel.dtype, kernel.rows.length, blocks) for kernel, blocks in launches]
    assert len(set(kinds)) == 3 and kinds == kinds[:3] * 3 and len(op.fast) == 1
    monkeypatch.setattr(ops.Op, "slow_path", lambda *_: pytest.fail("not by shapes"))
    monkeypatch.setattr(ops.Op, "_lookup", lambda *_: pytest.fail("not by shapes"))
    corpus.rms_norm(*calls[1], rows(1, 4096)[0], EPS)


def test_a_kernel_for_a_bad_place_is_not_used_for_good_ones(launches):
    odd = rows(16, 4096, stride=4097)
    corpus.rms_norm(odd, odd, None, EPS)
    assert not ops.OPS["rms_norm"].fast
    corpus.rms_norm(rows(16, 4096), rows(16, 4096), None, EPS)
    assert [kernel.rows.vec for kernel, _ in launches] == [1, 8] and len(ops.OPS["rms_norm"].fast) == 1


def test_rows_that_one_length_keeps_from_wide_accesses_are_in_the_table(launches):
    corpus.rms_norm(rows(16, 5125), rows(16, 5125), None, EPS)
    assert launches[0][0].rows.vec == 1 and len(ops.OPS["rms_norm"].fast) == 1


def test_what_refuses_nothing_is_not_in_the_table(launches, monkeypatch):
    ran = []
    monkeypatch.setattr(ops.OPS["rms_norm"], "fallback", lambda *args: ran.append(args))
    corpus.rms_norm(rows(0, 4096), rows(0, 4096), None, EPS)  # launches nothing
    corpus.rms_norm(rows(2, 500000), rows(2, 500000), None, EPS)  # no kernel takes it
    cpu = torch.zeros(16, 4096)
    corpus.rms_norm(cpu, cpu, None, EPS)
    monkeypatch.setenv("PORTER_DISABLE", "rms_norm")
    corpus.rms_norm(rows(16, 4096), rows(16, 4096), None, EPS)
    assert len(ran) == 3 and not launches and not ops.OPS["rms_norm"].fast
    monkeypatch.delenv("PORTER_DISABLE")
    ops.clear_plans()
    corpus.rms_norm(rows(16, 4096), rows(16, 4096), None, EPS)
    entry = dict(ops.OPS["rms_norm"].fast)
    corpus.rms_norm(cpu, cpu, None, EPS)  # refused by the kernel that is in the table for this shape, and stays there
    assert len(ran) == 4 and len(launches) == 1 and ops.OPS["rms_norm"].fast == entry


def test_wrong_arguments_raise_first_and_later(launches):
    x, w = rows(16, 4096), rows(1, 2048)[0]
    for _ in range(2):
        with pytest.raises(ValueError, match="weight has shape") as error:
            corpus.rms_norm(x, x, w, EPS)
        assert error.value.__context__ is None
        corpus.rms_norm(x, x, None, EPS)
    with pytest.raises(TypeError, match="epsilon"):
        corpus.rms_norm(x, x, w)


def test_unlike_devices_are_told_apart(launches, monkeypatch):
    monkeypatch.setattr(ops, "one_kind_of_device", lambda: False)
    for _ in range(2):
        corpus.silu_and_mul(rows(4, 128), rows(4, 256))
    assert len(launches) == 2 and not ops.OPS["silu_and_mul"].fast and len(ops.OPS["silu_and_mul"].exact) == 1


def test_tensors_without_memory_reach_no_kernel(launches):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(16, 4096, dtype=torch.bfloat16)
        corpus.rms_norm(x, x, x[0], EPS)
    assert not launches and not ops.OPS["rms_norm"].exact


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_what_every_op_passes_on_is_what_its_kernel_declares(launches, name):
    """Through the table too: the second call finds its launcher there."""
    call = WORKLOADS[name].make(16, torch.bfloat16, "cpu", **WORKLOADS[name].dims[0])
    call = tuple(aligned(a) if torch.is_tensor(a) else a for a in call)
    getattr(corpus, name)(*call)
    assert len(ops.OPS[name].fast) == 1
    getattr(corpus, name)(*call)
    assert len(launches) == 2 and launches[0] == launches[1] and len(ops.OPS[name].exact) == 1


def variants(name):
    """Calls of an op whose tensors often have as many bytes as others': sizes, dtypes, shapes."""
    for dtype in (torch.bfloat16, torch.float16):
        for dims in WORKLOADS[name].dims[:3]:
            if dims.get("length", 0) > 8192:
                continue
            for tokens in (8, 16):
                call = WORKLOADS[name].make(tokens, dtype, "meta", **dims)
                call = tuple(aligned(a) if torch.is_tensor(a) else a for a in call)
                yield call
                yield tuple(a.unflatten(0, (2, -1)) if torch.is_tensor(a) and a.shape[0] == tokens else a for a in call)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_tables_lead_to_what_a_plan_says(launches, name, monkeypatch):
    """Whatever was called before: the kernel, its grid, the fallback or the error of a call with empty tables."""
    monkeypatch.setattr(ops.OPS[name], "fallback", lambda *_: launches.append("fallback"))

    def outcome(call):
        before = len(launches)
        try:
            getattr(corpus, name)(*call)
        except (ValueError, TypeError) as error:
            return type(error)
        assert len(launches) == before + 1
        return launches[-1]

    calls, want = list(variants(name)), []
    for call in calls:
        ops.OPS[name].clear()
        want.append(outcome(call))
    assert len({w for w in want if isinstance(w, tuple)}) > (1 if "moe" in name else 3)  # one sort fits many sizes
    ops.OPS[name].clear()
    for order in (1, -1, 1):
        assert [outcome(call) for call in calls[::order]] == want[::order]


def test_an_op_is_looked_up_in_the_package_once():
    assert corpus.rms_norm is vars(corpus)["rms_norm"]


def test_devices_are_compared_as_plans_see_them(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for names, alike in ((("A", "A"), True), (("A", "B"), False)):
        monkeypatch.setattr(device, "device_of_index", lambda i, names=names: Device("sm_90a", 132, names[i]))
        device.one_kind_of_device.cache_clear()
        assert device.one_kind_of_device() is alike
    device.one_kind_of_device.cache_clear()
