"""A GPU process without a GPU, for tests: `copy` copies its first buffer to its second, other entries misbehave."""

from __future__ import annotations

import os
import sys
import time
from multiprocessing.connection import Connection

import numpy as np

from porter.verify.backends.gpu_driver import DeviceFacts
from porter.verify.backends.gpu_work import RunAnswer


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    index = int(sys.argv[2])
    if index > 1:
        connection.send("gpu:2 does not exist: this machine shows 2 CUDA devices")
        return
    connection.send(DeviceFacts(index, "Fake", (9, 0), 132, 1 << 20, 1 << 30, "13.0"))
    while True:
        job = connection.recv()
        match job.call.entry:
            case "copy":
                data = [[d.copy() for _, d in image.segments] for image in job.images]
                source, target = job.images
                data[1][0][target.origin : -target.origin] = data[0][0][source.origin : -source.origin]
                connection.send(RunAnswer(tuple(map(tuple, data)), 1e-5))
            case "fault":
                error = "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access)"
                connection.send(RunAnswer(error=error, fault="CUDA_ERROR_ILLEGAL_ADDRESS"))
                return
            case "refused":
                connection.send(RunAnswer(error="cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE (invalid argument)"))
            case "hang":
                time.sleep(60)
            case "die":
                print("Segmentation fault", file=sys.stderr, flush=True)
                os._exit(11)
            case _:
                connection.send(RunAnswer(error=str(np.__version__)))


if __name__ == "__main__":
    main()
