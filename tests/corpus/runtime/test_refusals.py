"""What the tables of ops rest on: compiled functions refuse arguments that they were not made for, before a launch.

The real ones are called here with host memory that claims to be a GPU's. Without a driver, accepted arguments end in
CUDA's error about that.
"""

from __future__ import annotations

import ctypes

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")
pytest.importorskip("tvm_ffi")

import torch
import tvm_ffi

from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS
from porter.corpus.runtime.specialisation import loaded
from porter.corpus.tune import without_memory

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU would be given host memory")
DL_CUDA = 2
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _OnGpu:
    """A CPU tensor whose DLPack capsule names device cuda:0."""

    def __init__(self, t):
        self.t = t

    def __dlpack__(self, **_):
        capsule = torch.utils.dlpack.to_dlpack(self.t)
        device = _pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)  # behind the address of the data
        ctypes.cast(device, ctypes.POINTER(ctypes.c_int32))[0] = DL_CUDA
        return capsule

    def __dlpack_device__(self):
        return DL_CUDA, 0


def launch(function, args):
    """ "launched", or the text of what the function raised before."""
    try:
        function(*[tvm_ffi.from_dlpack(_OnGpu(a)) if torch.is_tensor(a) else a for a in args])
    except RuntimeError as error:
        assert "Cuda" in str(error)
        return "launched"
    except (ValueError, TypeError) as error:
        return str(error)
    raise AssertionError("no driver was missed")


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
            assert launch(function, [*passed[:i], other, *passed[i + 1 :]]) != "launched", (i, what)
