"""Runs every Spec on the GPU of this machine through the CUDA driver and writes the recorded results.

    python -m tests.verify.emulator.golden.produce OUT.npz

Needs numpy and a driver (no toolkit: the driver assembles the PTX). The file maps each spec's name to its raw results.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from tests.verify.emulator.golden.specs import COUNT, HEADER, RAW, WIDTH, Spec, all_specs, symbol


class Driver:
    """The few driver calls that are needed."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.check("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.check("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(128)
        self.check("cuDeviceGetName", name, 128, device)
        version = ctypes.c_int()
        self.check("cuDriverGetVersion", ctypes.byref(version))
        self.description = f"{name.value.decode()}, driver {version.value}"
        self.check("cuCtxCreate_v2", ctypes.byref(context), 0, device)

    def check(self, function: str, *args: object) -> None:
        code = getattr(self.lib, function)(*args)
        if code:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'').decode()}")

    def load(self, ptx: str) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        log = ctypes.create_string_buffer(1 << 14)
        options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER, its size
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), ctypes.c_void_p(1 << 14))
        code = self.lib.cuModuleLoadDataEx(ctypes.byref(module), ptx.encode() + b"\0", 2, options, values)
        if code:
            raise RuntimeError(f"cuModuleLoadDataEx: {code}\n{log.value.decode()}")
        return module

    def to_device(self, array: np.ndarray) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self.check("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(array.nbytes, 16)))
        self.check("cuMemcpyHtoD_v2", pointer, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return pointer

    def run(self, module: ctypes.c_void_p, spec: Spec) -> np.ndarray:
        function = ctypes.c_void_p()
        self.check("cuModuleGetFunction", ctypes.byref(function), module, f"k_{symbol(spec.name)}".encode())
        out = np.zeros(COUNT, RAW[WIDTH[spec.output]])
        pointers = [self.to_device(a) for a in (*spec.values(), out)]
        array = (ctypes.c_void_p * len(pointers))(*(ctypes.cast(ctypes.byref(p), ctypes.c_void_p) for p in pointers))
        self.check("cuLaunchKernel", function, COUNT // 256, 1, 1, 256, 1, 1, 0, None, array, None)
        self.check("cuCtxSynchronize")
        self.check("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), pointers[-1], ctypes.c_size_t(out.nbytes))
        for p in pointers:
            self.check("cuMemFree_v2", p)
        return out


def main(target: str) -> None:
    driver = Driver()
    results: dict[str, np.ndarray] = {"machine": np.array(driver.description)}
    specs = all_specs()
    for start in range(0, len(specs), 50):
        chunk = specs[start : start + 50]
        module = driver.load(HEADER + "\n".join(s.ptx() for s in chunk))
        for spec in chunk:
            results[spec.name] = driver.run(module, spec)
    np.savez_compressed(target, **results)  # type: ignore[arg-type]
    print(driver.description, len(specs), "specs")


if __name__ == "__main__":
    main(sys.argv[1])
