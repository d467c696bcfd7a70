"""Runs an op of the corpus on CPU tensors: planned as for a GPU, compiled to PTX, executed by porter's emulator."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from porter.corpus.runtime.device import Device
from porter.corpus.runtime.signature import Tensor
from porter.corpus.runtime.specialisation import Specialisation, compiled
from porter.verify import emulator as ptx

CHECKS = ptx.Checks(shared_races=True, global_races=True)


def run(function: Any, *args: Any, arch: str = "sm_90a", sms: int = 132, **kwargs: Any) -> list[ptx.Result]:
    """Call an op on CPU tensors, in place, through the emulator; the launches' results. Fails on any violation."""
    op = function.op
    args = op.bind(args, kwargs)
    plan = op.plan(Device(arch, sms, "emulated"), *args)
    if plan is None:
        return []
    kernel, bind = plan
    calls: list[tuple[Any, ...]] = []
    bind(lambda *a: calls.append(a))(*args)
    return [result for call in calls for result in launches(kernel, call, arch)]


def launch(kernel: Specialisation, args: tuple[Any, ...], arch: str, **options: Any) -> ptx.Result:
    """The launch of a kernel with the arguments of its `__call__`, the stream left out."""
    (result,) = launches(kernel, args, arch, **options)
    return result


def launches(kernel: Specialisation, args: tuple[Any, ...], arch: str, **options: Any) -> list[ptx.Result]:
    """All launches that one call makes, as `launch`."""
    made = compiled(kernel, arch, "ptx")
    *values, blocks = args
    buffers: dict[int, ptx.Buffer] = {}
    encoded = [_encode(spec, v, buffers) for spec, v in zip(kernel.arguments(), values, strict=True) if spec]
    options = {"checks": CHECKS, "cooperative": kernel.cooperative, **options}
    module = ptx.load(made.ptx)
    grids = kernel.grids(blocks) or ((blocks, kernel.threads, kernel.cluster),) * len(made.entries)
    results = [
        ptx.launch(module, entry, grid, threads, encoded, **{"cluster": cluster, **options})
        for entry, (grid, threads, cluster) in zip(made.entries, grids, strict=True)
    ]
    for result in results:
        assert result.ok, result.violations
    return results


def _encode(spec: Any, value: Any, buffers: dict[int, ptx.Buffer]) -> Any:
    """A kernel parameter: a tensor is its address, then its run-time lengths (32 bits each) and strides (64 bits)."""
    if not isinstance(spec, Tensor):
        return np.float32(value) if spec.dtype == "f32" else value
    assert value.dim() == len(spec.shape), (tuple(value.shape), spec)
    storage = value.untyped_storage()
    start = storage.data_ptr()
    if start not in buffers:
        memory = (ctypes.c_uint8 * storage.nbytes()).from_address(start)
        buffers[start] = ptx.Buffer(np.frombuffer(memory, np.uint8))
    place = buffers[start].at(value.storage_offset() * value.element_size())
    for length, want in zip(value.shape, spec.shape, strict=True):
        assert isinstance(want, str) or length == want, (tuple(value.shape), spec)
    for length, stride, want in zip(value.shape, value.stride(), spec.stride, strict=True):
        assert want is None or length <= 1 or stride == want, (value.stride(), spec)
    lengths = [n for n, want in zip(value.shape, spec.shape, strict=True) if isinstance(want, str)]
    strides = [s for s, want in zip(value.stride(), spec.stride, strict=True) if want is None]
    packed = [sum(n << (32 * i) for i, n in enumerate(lengths[at : at + 2])) for at in range(0, len(lengths), 2)]
    return (place, *packed, *(s & 0xFFFFFFFFFFFFFFFF for s in strides))
