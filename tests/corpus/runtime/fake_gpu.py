"""Calls of compiled launch functions without a GPU: host memory that claims to be a GPU's.

Without a driver, accepted arguments end in CUDA's error about that.
"""

from __future__ import annotations

import ctypes

import torch
import tvm_ffi

DL_CUDA = 2
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class OnGpu:
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
        function(*[tvm_ffi.from_dlpack(OnGpu(a)) if torch.is_tensor(a) else a for a in args])
    except RuntimeError as error:
        assert "Cuda" in str(error)
        return "launched"
    except (ValueError, TypeError) as error:
        return str(error)
    raise AssertionError("no driver was missed")
