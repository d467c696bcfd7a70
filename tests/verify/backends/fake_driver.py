"""A stand-in for cuda.bindings.driver: device memory is host memory, kernels are Python functions. No GPU, no CUDA.

It keeps the driver's manners: tuples of (result, value), errors that stick, allocations that have to be freed.
"""

from __future__ import annotations

import ctypes
import enum
from types import SimpleNamespace


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


OK = CUresult.CUDA_SUCCESS
FACTS = {
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MULTIPROCESSOR_COUNT": 132,
    "L2_CACHE_SIZE": 4096,
}


def _names(prefix: str, *names: str) -> SimpleNamespace:
    return SimpleNamespace(**{f"{prefix}{n}": n for n in names})


class FakeDriver:
    """`kernels`: entry -> function(launch, arguments as bytes); it may raise a CUresult."""

    CUfunction_attribute = _names("CU_FUNC_ATTRIBUTE_", "MAX_DYNAMIC_SHARED_SIZE_BYTES")
    CUlaunchAttributeID = _names(
        "CU_LAUNCH_ATTRIBUTE_", "COOPERATIVE", "CLUSTER_DIMENSION", "PROGRAMMATIC_STREAM_SERIALIZATION"
    )
    CUdevice_attribute = _names("CU_DEVICE_ATTRIBUTE_", *FACTS)
    CUstream_flags = _names("CU_STREAM_", "DEFAULT")
    CUevent_flags = _names("CU_EVENT_", "DEFAULT")
    CUstreamCaptureMode = _names("CU_STREAM_CAPTURE_MODE_", "THREAD_LOCAL")

    class CUlaunchConfig(SimpleNamespace):
        pass

    class CUlaunchAttribute(SimpleNamespace):
        pass

    @staticmethod
    def CUlaunchAttributeValue() -> SimpleNamespace:
        return SimpleNamespace(clusterDim=SimpleNamespace(x=1, y=1, z=1))

    def __init__(self, kernels, sizes, devices=1):
        self.kernels, self.sizes, self.devices = kernels, sizes, devices
        self.memory = {}
        self.variables: dict[bytes, int] = {}
        self.placed: dict[bytes, int] = {}
        self.smem = {}
        self.launches = []
        self.captured = None
        self.broken = OK
        self.clock = 0.0  # microseconds that the work so far has taken
        self.events = {}
        self.loaded_while_capturing = False

    # ---- set-up

    def cuInit(self, flags):
        return (OK,)

    def cuGetErrorString(self, result):
        return OK, f"text of {int(result)}".encode()

    def cuDeviceGetCount(self):
        return OK, self.devices

    def cuDeviceGet(self, index):
        return OK, index

    def cuDevicePrimaryCtxRetain(self, device):
        return OK, "context"

    def cuCtxSetCurrent(self, context):
        return (OK,)

    def cuDeviceGetAttribute(self, name, device):
        return OK, FACTS[name]

    def cuDeviceGetName(self, size, device):
        return OK, b"Fake\0\0"

    def cuDriverGetVersion(self):
        return OK, 13000

    def cuDeviceTotalMem(self, device):
        return OK, 1 << 30

    def cuStreamCreate(self, flags):
        return OK, "stream"

    def cuEventCreate(self, flags):
        self.events[len(self.events)] = 0.0
        return OK, len(self.events) - 1

    # ---- memory

    def cuMemAlloc(self, size):
        block = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(block) // 256) * 256
        self.memory[address] = (block, size)
        return OK, address

    def cuMemFree(self, address):
        if address not in self.memory:
            return (CUresult.CUDA_ERROR_INVALID_VALUE,)
        del self.memory[address]
        return (OK,)

    def cuMemGetInfo(self):
        return OK, 1 << 24, 1 << 30

    def inside(self, address, size):
        return any(base <= address and address + size <= base + n for base, (_, n) in self.memory.items())

    def cuMemcpyHtoD(self, target, source, size):
        assert self.inside(target, size)
        ctypes.memmove(target, source, size)
        return (self.broken,)

    def cuMemcpyDtoH(self, target, source, size):
        if self.broken is OK:
            assert self.inside(source, size)
            ctypes.memmove(target, source, size)
        return (self.broken,)

    def cuMemcpyDtoDAsync(self, target, source, size, stream):
        assert self.inside(target, size) and self.inside(source, size)
        self._do(lambda: ctypes.memmove(target, source, size), 1.0)
        return (self.broken,)

    def cuMemsetD8Async(self, target, value, size, stream):
        assert self.inside(target, size)
        self._do(lambda: ctypes.memset(target, value, size), 1.0)
        return (self.broken,)

    def cuModuleGetGlobal(self, module, name):
        """A variable of every module, in memory of its own: `variables` are name -> bytes."""
        if name not in self.variables:
            return CUresult.CUDA_ERROR_INVALID_VALUE, None, None
        if name not in self.placed:
            _, self.placed[name] = self.cuMemAlloc(self.variables[name])
        return OK, self.placed[name], self.variables[name]

    # ---- work

    def _do(self, work, us):
        if self.captured is not None:
            self.captured.append((work, us))
            return
        work()
        self.clock += us

    def cuModuleLoadData(self, image):
        self.loaded_while_capturing |= self.captured is not None
        if image == b"\x7fELF other":
            return CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU, None
        return OK, image

    def cuModuleGetFunction(self, module, entry):
        return (OK, entry.decode()) if entry.decode() in self.kernels else (CUresult.CUDA_ERROR_INVALID_VALUE, None)

    def cuFuncSetAttribute(self, function, attribute, value):
        self.smem[function] = value
        return (OK,)

    def cuLaunchKernelEx(self, config, function, pointer, extra):
        assert len(config.attrs) == config.numAttrs
        if config.sharedMemBytes > max(48 << 10, self.smem.get(function, 0)):
            return (CUresult.CUDA_ERROR_INVALID_VALUE,)
        sizes = self.sizes[function]
        addresses = (ctypes.c_void_p * max(1, len(sizes))).from_address(pointer)
        arguments = [ctypes.string_at(addresses[i], n) for i, n in enumerate(sizes)]
        self.launches.append((function, config, arguments))

        def work():
            failure = self.kernels[function](config, arguments)
            if isinstance(failure, CUresult):
                self.broken = failure

        self._do(work, 10.0 if function == "slow" else 5.0)
        return (OK,)

    def cuStreamSynchronize(self, stream):
        return (self.broken,)

    def cuStreamBeginCapture(self, stream, mode):
        self.captured = []
        return (OK,)

    def cuStreamEndCapture(self, stream):
        graph, self.captured = self.captured, None
        return OK, graph

    def cuGraphInstantiate(self, graph, flags):
        return OK, list(graph)

    def cuGraphDestroy(self, graph):
        return (OK,)

    def cuGraphUpload(self, executable, stream):
        return (OK,)

    def cuGraphExecDestroy(self, executable):
        executable.clear()
        return (OK,)

    def cuGraphLaunch(self, executable, stream):
        for work, us in executable:
            work()
            self.clock += us
        return (self.broken,)

    def cuEventRecord(self, event, stream):
        self.events[event] = self.clock
        return (OK,)

    def cuEventSynchronize(self, event):
        return (self.broken,)

    def cuEventElapsedTime(self, start, stop):
        return OK, (self.events[stop] - self.events[start]) / 1e3
