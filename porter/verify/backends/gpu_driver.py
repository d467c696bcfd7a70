"""The CUDA driver API that porter needs, through cuda-bindings: memory, cubins, launches, graphs, events. No torch.

One `Device` a process, on the device's primary context. Only the GPU child process and benchmarks use it.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from porter.case.reader import LaunchShape
from porter.wording import plural


class GpuError(RuntimeError):
    """A call of the driver failed. `name` is its CUDA error (CUDA_ERROR_ILLEGAL_ADDRESS), "" when it has none."""

    def __init__(self, message: str, name: str = ""):
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class DeviceFacts:
    """What is known of a device before anything runs on it. `driver` is the CUDA version it supports ("13.0")."""

    index: int
    name: str
    capability: tuple[int, int]
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    driver: str

    def runs(self, arch: str) -> bool:
        """Does it take cubins of an architecture? Those of its own major version, as high as its own at most; with an
        "a" only those of exactly its own."""
        found = re.fullmatch(r"sm_(\d+)(\d)([af]?)", arch)
        if found is None:
            return False
        major, minor = int(found.group(1)), int(found.group(2))
        if found.group(3) == "a":
            return (major, minor) == self.capability
        return major == self.capability[0] and minor <= self.capability[1]

    @property
    def arch(self) -> str:
        """The architecture whose cubins it runs, with the instructions of its own."""
        return f"sm_{self.capability[0]}{self.capability[1]}" + ("a" if self.capability >= (9, 0) else "")


class Graph:
    """A CUDA graph ready to be replayed; `calls` is how many calls of what is timed it holds."""

    def __init__(self, device: Device, executable: Any, calls: int):
        self._device, self._executable, self.calls = device, executable, calls

    def replay_us(self, before: Callable[[], None] | None = None) -> float:
        """Microseconds a call of one replay, between events; `before` runs first, outside of the time."""
        device = self._device
        if before is not None:
            before()
        device.check("cuEventRecord", device.driver.cuEventRecord(device.start, device.stream))
        device.check("cuGraphLaunch", device.driver.cuGraphLaunch(self._executable, device.stream))
        device.check("cuEventRecord", device.driver.cuEventRecord(device.stop, device.stream))
        device.check("cuEventSynchronize", device.driver.cuEventSynchronize(device.stop))
        ms = device.check("cuEventElapsedTime", device.driver.cuEventElapsedTime(device.start, device.stop))
        return float(ms) * 1e3 / self.calls

    def destroy(self) -> None:
        self._device.driver.cuGraphExecDestroy(self._executable)


class DeviceFunction:
    """One kernel of a loaded cubin."""

    def __init__(self, device: Device, handle: Any):
        self._device, self._handle, self._smem = device, handle, 0

    def prepare(self, shape: LaunchShape, arguments: Sequence[bytes], pdl: bool = False) -> Callable[[], None]:
        """A call that launches with these argument bytes on the device's stream; nothing is packed again.

        `pdl` lets the launch begin before the one ahead of it has ended (programmatic stream serialisation).
        """
        device, driver = self._device, self._device.driver
        if shape.smem > self._smem:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            device.check("cuFuncSetAttribute", driver.cuFuncSetAttribute(self._handle, attribute, shape.smem))
            self._smem = shape.smem
        packed = [ctypes.create_string_buffer(data, len(data)) for data in arguments]
        addresses = (ctypes.c_void_p * max(1, len(packed)))(*(ctypes.addressof(p) for p in packed))
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
        config.sharedMemBytes = shape.smem
        config.hStream = device.stream
        attributes = _attributes(driver, shape, pdl)
        config.attrs, config.numAttrs = attributes, len(attributes)
        pointer, handle = ctypes.addressof(addresses), self._handle

        def launch(_keep: Any = (packed, addresses, attributes)) -> None:
            device.check("cuLaunchKernelEx", driver.cuLaunchKernelEx(config, handle, pointer, 0))

        return launch


def _attributes(driver: Any, shape: LaunchShape, pdl: bool) -> list[Any]:
    found = []

    def add(name: str, member: str, value: Any) -> None:
        attribute, union = driver.CUlaunchAttribute(), driver.CUlaunchAttributeValue()
        if member == "clusterDim":
            union.clusterDim.x, union.clusterDim.y, union.clusterDim.z = value
        else:
            setattr(union, member, value)
        attribute.id = getattr(driver.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
        attribute.value = union
        found.append(attribute)

    if shape.cooperative:
        add("COOPERATIVE", "cooperative", 1)
    if shape.cluster != (1, 1, 1):
        add("CLUSTER_DIMENSION", "clusterDim", shape.cluster)
    if pdl:
        add("PROGRAMMATIC_STREAM_SERIALIZATION", "programmaticStreamSerializationAllowed", 1)
    return found


class Device:
    """A device with its stream and two events. Raises GpuError when there is no driver or no such device."""

    def __init__(self, index: int = 0):
        self.driver = load_driver()
        d = self.driver
        self.check("cuInit", _initialised(d))
        count = int(self.check("cuDeviceGetCount", d.cuDeviceGetCount()))
        if index >= count:
            shown = plural(count, "CUDA device")
            raise GpuError(f"gpu:{index} does not exist: this machine shows {shown}")
        handle = self.check("cuDeviceGet", d.cuDeviceGet(index))
        context = self.check("cuDevicePrimaryCtxRetain", d.cuDevicePrimaryCtxRetain(handle))
        self.check("cuCtxSetCurrent", d.cuCtxSetCurrent(context))
        self.facts = self._facts(index, handle)
        # Not a non-blocking one: launches have to wait for uploads, which may still be under way when they return.
        flags = d.CUstream_flags.CU_STREAM_DEFAULT
        self.stream = self.check("cuStreamCreate", d.cuStreamCreate(flags))
        event = d.CUevent_flags.CU_EVENT_DEFAULT
        self.start = self.check("cuEventCreate", d.cuEventCreate(event))
        self.stop = self.check("cuEventCreate", d.cuEventCreate(event))
        self._modules: dict[bytes, Any] = {}

    def check(self, call: str, answer: tuple[Any, ...]) -> Any:
        """The value that a driver call returned. Raises GpuError with the driver's own words."""
        if int(answer[0]) != 0:
            name = getattr(answer[0], "name", str(answer[0]))
            _, text = self.driver.cuGetErrorString(answer[0])
            description = text.decode() if isinstance(text, bytes) else str(text)
            raise GpuError(f"{call}: {name} ({description})", name)
        return answer[1] if len(answer) > 1 else None

    def _facts(self, index: int, handle: Any) -> DeviceFacts:
        d = self.driver

        def attribute(name: str) -> int:
            key = getattr(d.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(self.check("cuDeviceGetAttribute", d.cuDeviceGetAttribute(key, handle)))

        name = self.check("cuDeviceGetName", d.cuDeviceGetName(128, handle))
        version = int(self.check("cuDriverGetVersion", d.cuDriverGetVersion()))
        return DeviceFacts(
            index,
            bytes(name).split(b"\0")[0].decode(),
            (attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")),
            attribute("MULTIPROCESSOR_COUNT"),
            attribute("L2_CACHE_SIZE"),
            int(self.check("cuDeviceTotalMem", d.cuDeviceTotalMem(handle))),
            f"{version // 1000}.{version % 1000 // 10}",
        )

    # ---- memory: device addresses are plain numbers

    def allocate(self, nbytes: int) -> int:
        return int(self.check("cuMemAlloc", self.driver.cuMemAlloc(max(1, nbytes))))

    def free(self, address: int) -> None:
        self.check("cuMemFree", self.driver.cuMemFree(address))

    def free_bytes(self) -> int:
        answer = self.driver.cuMemGetInfo()
        self.check("cuMemGetInfo", answer)
        return int(answer[1])

    def upload(self, address: int, data: np.ndarray) -> None:
        """Copy a contiguous array to the device."""
        if data.nbytes:
            host = np.ascontiguousarray(data)
            self.check("cuMemcpyHtoD", self.driver.cuMemcpyHtoD(address, host.ctypes.data, host.nbytes))

    def download(self, address: int, nbytes: int) -> np.ndarray:
        """Bytes from the device."""
        data = np.empty(nbytes, np.uint8)
        if nbytes:
            self.check("cuMemcpyDtoH", self.driver.cuMemcpyDtoH(data.ctypes.data, address, nbytes))
        return data

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """A copy on the device, in the stream's order (captured when a graph is being captured)."""
        if nbytes:
            answer = self.driver.cuMemcpyDtoDAsync(target, source, nbytes, self.stream)
            self.check("cuMemcpyDtoDAsync", answer)

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Set bytes, in the stream's order."""
        if nbytes:
            self.check("cuMemsetD8Async", self.driver.cuMemsetD8Async(address, value, nbytes, self.stream))

    # ---- work

    def function(self, cubin: bytes, entry: str) -> DeviceFunction:
        """A kernel of a cubin, loaded once. PTX is refused: the driver would need to be as new as its compiler."""
        module = self._module(cubin)
        return DeviceFunction(
            self, self.check("cuModuleGetFunction", self.driver.cuModuleGetFunction(module, entry.encode()))
        )

    def variable(self, cubin: bytes, symbol: str, nbytes: int) -> int:
        """The address of a module variable of this size. Raises GpuError where it has another."""
        answer = self.driver.cuModuleGetGlobal(self._module(cubin), symbol.encode())
        self.check(f"cuModuleGetGlobal of {symbol}", answer)
        if int(answer[2]) != nbytes:
            raise GpuError(f"{symbol} has {int(answer[2])} bytes, its values have {nbytes}")
        return int(answer[1])

    def _module(self, cubin: bytes) -> Any:
        if cubin[:4] != b"\x7fELF":
            raise GpuError("not a cubin; porter does not hand PTX to the driver")
        module = self._modules.get(cubin)
        if module is None:
            module = self.check("cuModuleLoadData", self.driver.cuModuleLoadData(cubin))
            self._modules[cubin] = module
        return module

    def synchronize(self) -> None:
        self.check("cuStreamSynchronize", self.driver.cuStreamSynchronize(self.stream))

    def capture(self, calls: Sequence[Callable[[], None]], timed: int = 0) -> Graph:
        """The calls, in order, as one graph. `timed` is what a replay's time is divided by; 0: their number."""
        d = self.driver
        mode = d.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self.check("cuStreamBeginCapture", d.cuStreamBeginCapture(self.stream, mode))
        try:
            for call in calls:
                call()
        except BaseException:
            d.cuStreamEndCapture(self.stream)
            raise
        graph = self.check("cuStreamEndCapture", d.cuStreamEndCapture(self.stream))
        executable = self.check("cuGraphInstantiate", d.cuGraphInstantiate(graph, 0))
        d.cuGraphDestroy(graph)
        self.check("cuGraphUpload", d.cuGraphUpload(executable, self.stream))
        return Graph(self, executable, timed or len(calls))


def load_driver() -> Any:
    """cuda.bindings.driver. Raises GpuError when it is not installed."""
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise GpuError(f"cuda-bindings cannot be imported ({error}); pip install cuda-bindings") from None


def _initialised(driver: Any) -> tuple[Any, ...]:
    """cuInit's answer. Raises GpuError when the driver's library is missing: cuda-bindings looks for it only now."""
    try:
        return tuple(driver.cuInit(0))
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GpuError(f"no NVIDIA driver on this machine: {text}") from None
