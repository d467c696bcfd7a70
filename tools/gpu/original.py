"""Launching an original: its cubin through the CUDA driver (cuda-bindings), on torch's context and stream."""

from __future__ import annotations

import ctypes
import importlib
import struct
from collections.abc import Sequence
from typing import Any

from porter.case.reader import LaunchShape
from tools.gpu.manifest import Parameter

_CODES = {
    "ptr": "Q", "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q",
    "u64": "Q", "f32": "f", "f64": "d", "f16": "e",
}  # fmt: skip


def pack(parameters: Sequence[Parameter], values: Sequence[int | float | bool]) -> list[bytes]:
    """The bytes of each argument. Raises ValueError where they are not as many as the kernel's parameter takes."""
    packed = []
    for p, value in zip(parameters, values, strict=True):
        code = _CODES[p.dtype]
        data = struct.pack(f"<{code}", value if code in "efd" else int(value))
        if len(data) != p.size:
            raise ValueError(f"{p.name} is {p.dtype} ({len(data)} bytes), the kernel takes {p.size}")
        packed.append(data)
    return packed


def _driver() -> Any:
    return importlib.import_module("cuda.bindings.driver")


def _checked(answer: tuple[Any, ...], what: str) -> Any:
    if answer[0].value != 0:
        raise RuntimeError(f"{what}: {answer[0].name}")
    return answer[1] if len(answer) > 1 else None


class Original:
    """One kernel of a cubin, loaded into the current context (touch the device through torch first)."""

    def __init__(self, cubin: bytes, entry: str, parameters: Sequence[Parameter] = ()):
        driver = _driver()
        self.parameters = parameters
        self._cubin = cubin  # the driver may read it later
        self._module = _checked(driver.cuModuleLoadData(cubin), "cuModuleLoadData")
        self.function = _checked(driver.cuModuleGetFunction(self._module, entry.encode()), "cuModuleGetFunction")
        self._smem = 0

    def launch(self, shape: LaunchShape, values: Sequence[int | float | bool], stream: int) -> None:
        """Launch with addresses and numbers, one a parameter, on a stream's handle. Raises RuntimeError."""
        self.prepare(shape, values)(stream)

    def prepare(self, shape: LaunchShape, values: Sequence[int | float | bool]) -> Any:
        """A function of the stream that launches with these arguments: nothing is packed again."""
        driver = _driver()
        packed = [ctypes.create_string_buffer(data, len(data)) for data in pack(self.parameters, values)]
        addresses = (ctypes.c_void_p * max(1, len(packed)))(*(ctypes.addressof(p) for p in packed))
        if shape.smem > self._smem:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _checked(driver.cuFuncSetAttribute(self.function, attribute, shape.smem), "cuFuncSetAttribute")
            self._smem = shape.smem
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
        config.sharedMemBytes = shape.smem
        attributes = []
        if shape.cooperative:
            value, attribute = driver.CUlaunchAttributeValue(), driver.CUlaunchAttribute()
            value.cooperative = 1
            attribute.id, attribute.value = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value
            attributes.append(attribute)
        if shape.cluster != (1, 1, 1):
            raise NotImplementedError("the reference kernels have no clusters")
        config.attrs, config.numAttrs = attributes, len(attributes)
        pointer = ctypes.addressof(addresses)

        def launch(stream: int, _keep: Any = (packed, addresses, attributes)) -> None:
            config.hStream = driver.CUstream(stream)
            _checked(driver.cuLaunchKernelEx(config, self.function, pointer, 0), "cuLaunchKernelEx")

        return launch
