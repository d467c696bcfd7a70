"""The GPU backend: original and port as cubins, launched in a child process through the CUDA driver."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from porter.case.reader import LaunchShape
from porter.model import Diagnostic, PorterError
from porter.verify.backends.gpu_driver import DeviceFacts
from porter.verify.backends.gpu_work import RunAnswer, RunJob, call_of, image_of, store
from porter.verify.backends.interface import ORDINARY, Argument, Build, RunOptions, RunResult, Violation
from porter.verify.emulator import PtxError

NO_GPU = "PRT878"
SECONDS = 60.0  # a launch may take before it counts as hanging
START_SECONDS = 60.0
_KINDS = {"CUDA_ERROR_ILLEGAL_ADDRESS": "out-of-bounds", "CUDA_ERROR_MISALIGNED_ADDRESS": "misaligned"}


def has_driver() -> bool:
    """Is there an NVIDIA driver to ask at all? Quick, and starts nothing."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


class Died(Exception):
    """The child ended, or did not answer in time (`hung`)."""

    def __init__(self, message: str, hung: bool = False):
        super().__init__(message)
        self.hung = hung


class GpuProcess:
    """The child process of one device: started when it is first needed, again after a kernel brought it down."""

    def __init__(self, index: int, command: Sequence[str] = (sys.executable, "-m", "porter.verify.backends.gpu_child")):
        self.index = index
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._log: Any = None
        self._facts: DeviceFacts | None = None

    @property
    def facts(self) -> DeviceFacts:
        """The device. Raises PorterError PRT878 where there is none."""
        self._start()
        assert self._facts is not None
        return self._facts

    def ask(self, job: Any, seconds: float) -> Any:
        """The answer to a job. Raises Died, and PorterError PRT878 where there is no GPU."""
        self._start()
        assert self._connection is not None
        try:
            self._connection.send(job)
            if not self._connection.poll(seconds):
                self.close()
                raise Died(f"it did not end within {seconds:g} s", hung=True)
            found = self._connection.recv()
        except (EOFError, OSError):
            raise Died(self._last_words()) from None
        except BaseException:
            self.close()  # interrupted half-way: the next answer would be to the wrong question
            raise
        if getattr(found, "fault", ""):
            self.close()
        return found

    def _start(self) -> None:
        if self._connection is not None:
            return
        ours, theirs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        root = str(Path(__file__).resolve().parents[3])
        env = {**os.environ, "CUDA_MODULE_LOADING": "EAGER"}
        env["PYTHONPATH"] = os.pathsep.join(p for p in (root, env.get("PYTHONPATH", "")) if p)
        self._process = subprocess.Popen(
            [*self._command, str(theirs.fileno()), str(self.index)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=env,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._connection = ours
        try:
            if not ours.poll(START_SECONDS):
                raise Died(f"the GPU process did not start within {START_SECONDS:g} s")
            first = ours.recv()
        except (EOFError, OSError, Died) as error:
            words = str(error) if isinstance(error, Died) else self._last_words()
            self.close()
            raise _no_gpu(words) from None
        if not isinstance(first, DeviceFacts):
            self.close()
            raise _no_gpu(str(first))
        self._facts = first

    def _last_words(self) -> str:
        code = self._process.wait() if self._process else 0
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        self.close()
        return f"the GPU process ended (exit {code}){': ' + lines[-1] if lines else ''}"

    def close(self) -> None:
        """End the child."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
        if self._log is not None:
            self._log.close()
        self._process = self._connection = self._log = None


def _no_gpu(why: str) -> PorterError:
    help = "run on a machine with an NVIDIA GPU and its driver, or use --backend emulator"
    return PorterError(Diagnostic(NO_GPU, why, help=help))


_processes: dict[int, GpuProcess] = {}
_lock = threading.Lock()


def gpu_process(index: int = 0) -> GpuProcess:
    """The process of a device, one for all backends of this porter."""
    with _lock:
        if index not in _processes:
            _processes[index] = GpuProcess(index)
        return _processes[index]


@atexit.register
def _close_all() -> None:
    for process in _processes.values():
        process.close()


class GpuBackend:
    """Runs builds on a device. What it cannot see, it does not claim: only a fault or a hang is a violation here."""

    checked: tuple[str, ...] = ()
    schedules: tuple[int, ...] = tuple(range(20))  # repeats: the hardware chooses the order itself

    def __init__(self, index: int = 0, process: GpuProcess | None = None, seconds: float = SECONDS):
        self.name = f"gpu:{index}" if index else "gpu"
        self.process = process or gpu_process(index)
        self._seconds = seconds
        self._turn = threading.Lock()

    @property
    def facts(self) -> DeviceFacts:
        return self.process.facts

    @property
    def sm_count(self) -> int:
        return self.facts.sm_count

    def run(
        self, build: Build, shape: LaunchShape, arguments: Sequence[Argument], options: RunOptions = ORDINARY
    ) -> RunResult:
        """One launch. Of the options only `variables` matter. A fault is a violation, and an error too, since there is
        nothing to compare; a launch that the driver refuses is an error."""
        try:
            call, buffers = call_of(build, shape, arguments, options.variables)
        except (PtxError, ValueError) as error:
            return RunResult(error=str(error))
        images = [image_of(b) for b in buffers]
        try:
            with self._turn:
                answer: RunAnswer = self.process.ask(RunJob(call, tuple(images)), self._seconds)
        except Died as death:
            kind = "hang" if death.hung else "crash"
            return RunResult((Violation(kind, str(death)),) if death.hung else (), error=str(death))
        if answer.fault:
            kind = _KINDS.get(answer.fault, "fault")
            return RunResult((Violation(kind, f"the GPU stopped the kernel: {answer.error}"),), error=answer.error)
        if answer.error:
            return RunResult(error=answer.error)
        for buffer, image, segments in zip(buffers, images, answer.segments, strict=True):
            store(buffer, image, segments)
        return RunResult(seconds=answer.seconds)
