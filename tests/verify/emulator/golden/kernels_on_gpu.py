"""Whole sample kernels on the GPU of this machine and on the emulator, on the same bytes; prints how they compare.

python -m tests.verify.emulator.golden.kernels_on_gpu
"""
# ruff: noqa: E501

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from porter.verify import emulator as ptx
from tests.verify.emulator.golden.produce import Driver

SAMPLES = Path(__file__).parents[1] / "ptx_samples"
Case = tuple[
    str, str, int, int, int, list[object], list[int]
]  # module, entry, grid, block, shared bytes, arguments, outputs


def bf16(x: np.ndarray) -> np.ndarray:
    return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def cases() -> list[Case]:
    rng = np.random.default_rng(11)
    normal = rng.standard_normal
    x, w = bf16(normal((64, 4096))), bf16(normal(4096))
    logits = (normal((32, 1000)) * 5).astype(np.float32)
    halves = (normal((32, 2048)) * 3).astype(np.float16).view(np.uint16)
    ids = rng.integers(0, 64, 100_000).astype(np.int32)
    zeros = lambda n, t: np.zeros(n, t)  # noqa: E731
    rms = [zeros(x.size, np.uint16), x, w, np.int32(4096), np.float32(1e-6)]
    dsl = [x, w, zeros(x.size, np.uint16), np.int32(4096), np.float32(1e-6)]
    packed = struct.pack("<i3fq", 5, 1.5, 2.5, 3.5, 100)
    return [
        ("kernels", "rms_norm_bf16", 64, 256, 0, rms, [0]),
        ("rms_cutedsl", "rms", 64, 256, 1024, dsl, [2]),
        ("kernels", "softmax_f32", 32, 256, 4000, [zeros(32_000, np.float32), logits, np.int32(1000)], [0]),
        ("kernels", "quant_fp8", 32, 256, 0, [zeros(65_536, np.uint8), zeros(32, np.float32), halves, np.int32(2048)], [0, 1]),
        ("kernels", "moe_hist", 16, 256, 256, [zeros(64, np.int32), ids, np.int32(100_000)], [0]),
        ("kernels", "gbar", 64, 256, 0, [zeros(1, np.uint32), zeros(16_384, np.float32), zeros(16_384, np.float32)], [0, 1, 2]),
        ("kernels", "callee", 1, 256, 0, [zeros(256, np.float32), np.float32(0.37)], [0]),
        ("kernels", "sw", 1, 32, 0, [zeros(32, np.int32), packed], [0]),
    ]  # fmt: skip


def on_gpu(
    driver: Driver, text: str, entry: str, grid: int, block: int, shared: int, args: Sequence[object]
) -> list[np.ndarray]:
    function = ctypes.c_void_p()
    driver.check("cuModuleGetFunction", ctypes.byref(function), driver.load(text), entry.encode())
    holders: list[object] = []
    buffers: list[tuple[ctypes.c_uint64, np.ndarray]] = []
    for value in args:
        if isinstance(value, np.ndarray):
            pointer = driver.to_device(value)
            buffers.append((pointer, value))
            holders.append(pointer)
        else:
            raw = value if isinstance(value, bytes) else value.tobytes()  # type: ignore[attr-defined]
            holders.append(ctypes.create_string_buffer(raw, len(raw)))
    array = (ctypes.c_void_p * len(holders))(*(ctypes.addressof(h) for h in holders))  # type: ignore[arg-type]
    driver.check("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, shared, None, array, None)
    driver.check("cuCtxSynchronize")
    out = []
    for pointer, value in buffers:
        got = np.zeros_like(value)
        driver.check("cuMemcpyDtoH_v2", got.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(got.nbytes))
        out.append(got)
    return out


def main() -> None:
    driver = Driver()
    print(driver.description)
    for name, part, grid, block, shared, args, outputs in cases():
        text = (SAMPLES / f"{name}.ptx").read_text()
        module = ptx.load(text)
        entry = next(e for e in module.entries if part in e)
        plain = text.replace(".version 9.4", ".version 9.0")  # drivers lag behind the compiler; nothing newer is used
        gpu = on_gpu(driver, plain, entry, grid, block, shared, args)
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        buffers = [ptx.Buffer(a) if isinstance(a, np.ndarray) else a for a in copies]
        result = ptx.launch(module, entry, grid, block, buffers, smem_bytes=shared, backend="numpy")
        for k in outputs:
            a, b = gpu[k].reshape(-1), copies[k].reshape(-1)  # type: ignore[attr-defined]
            differ = a != b
            line = f"{part} output {k}: {int(differ.sum())} of {a.size} differ, {len(result.violations)} violations"
            if differ.any() and a.dtype == np.float32:
                line += f", largest relative {np.abs(a[differ] / b[differ] - 1).max():.2e}"
            elif differ.any():
                line += f", largest code distance {np.abs(a[differ].astype(int) - b[differ].astype(int)).max()}"
            print(line)


if __name__ == "__main__":
    main()
