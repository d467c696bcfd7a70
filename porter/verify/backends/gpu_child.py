"""The process that owns the CUDA context: a kernel that faults ends it, not porter. Started by
porter.verify.backends.gpu only.

`python -m porter.verify.backends.gpu_child FD INDEX`: pickled jobs come in over the connection FD, answers go out. No
code of a port runs here, only cubins.
"""

from __future__ import annotations

import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from porter.verify.backends.gpu_driver import Device, GpuError
from porter.verify.backends.gpu_work import BufferPointer, KernelCall, RunAnswer, RunJob

# After these errors the driver refuses every further call in this process.
FAULTS = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS", "ILLEGAL_INSTRUCTION", "INVALID_ADDRESS_SPACE", "INVALID_PC",
        "HARDWARE_STACK_ERROR", "LAUNCH_FAILED", "LAUNCH_TIMEOUT", "ASSERT", "ECC_UNCORRECTABLE", "CONTAINED",
        "MPS_CLIENT_TERMINATED", "TENSOR_MEMORY_LEAK",
    )
)  # fmt: skip


def argument_bytes(call: KernelCall, addresses: list[int]) -> list[bytes]:
    """The bytes of each argument, addresses filled in."""
    return [addresses[a.buffer].to_bytes(8, "little") if isinstance(a, BufferPointer) else a for a in call.arguments]


def run(device: Device, job: RunJob) -> RunAnswer:
    """One launch over fresh device memory."""
    bases = [device.allocate(image.nbytes) for image in job.images]
    try:
        for base, image in zip(bases, job.images, strict=True):
            for offset, data in image.segments:
                device.upload(base + offset, data)
        addresses = [base + image.origin for base, image in zip(bases, job.images, strict=True)]
        function = device.function(job.call.cubin, job.call.entry)
        launch = function.prepare(job.call.shape, argument_bytes(job.call, addresses))
        variables = [(device.variable(job.call.cubin, v.symbol, v.nbytes), v) for v in job.call.variables]
        for address, v in variables:
            device.copy(address, addresses[v.buffer], v.nbytes)
        device.synchronize()
        start = time.perf_counter()
        launch()
        device.synchronize()
        seconds = time.perf_counter() - start
        for address, v in variables:
            device.copy(addresses[v.buffer], address, v.nbytes)
        device.synchronize()
        segments = tuple(
            tuple(device.download(base + offset, data.size) for offset, data in image.segments)
            for base, image in zip(bases, job.images, strict=True)
        )
    except GpuError as error:
        if error.name not in FAULTS:
            _free(device, bases)
        raise
    _free(device, bases)
    return RunAnswer(segments, seconds)


def _free(device: Device, bases: list[int]) -> None:
    for base in bases:
        device.free(base)


def answer(device: Device, job: Any) -> Any:
    """The answer to a job; errors of the driver are answers too."""
    from porter.verify.backends.gpu_timing import TimingAnswer, TimingJob, time_job

    try:
        if isinstance(job, RunJob):
            return run(device, job)
        if isinstance(job, TimingJob):
            return time_job(device, job)
        raise TypeError(f"unknown job {type(job).__name__}")
    except GpuError as error:
        fault = error.name if error.name in FAULTS else ""
        kind = TimingAnswer if isinstance(job, TimingJob) else RunAnswer
        return kind(error=str(error), fault=fault)


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    try:
        device = Device(int(sys.argv[2]))
    except GpuError as error:
        connection.send(str(error))
        return
    connection.send(device.facts)
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        found = answer(device, job)
        connection.send(found)
        if getattr(found, "fault", ""):
            return  # the context is gone; porter starts another process


if __name__ == "__main__":
    main()
