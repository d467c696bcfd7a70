"""Compiles ports in child processes, so that a crash, a hang or a changed module is an answer and never an accident.

CuTeDSL may segfault on a wrong program and is not thread-safe. Children stay warm: each imports cutlass once (about a
second) and serves every request of a run; one that dies is reported with its request and replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from porter.corpus.runtime import ArtifactCache, Compiled, cache_root, digest
from porter.corpus.runtime.dsl import dsl_version
from porter.corpus.runtime.sources import source_closure
from porter.verify.dsl_environments import Toolchain

# What a child may see of the environment: enough to find Python, libraries and the cache; no keys, no proxies.
_ENV = re.compile(
    r"(PATH|HOME|USER|LANG|LC_\w+|TMPDIR|PYTHON\w*|VIRTUAL_ENV|LD_LIBRARY_PATH|CUDA_\w+|CUTE_DSL_\w+|PORTER_CACHE"
    r"|XDG_CACHE_HOME)"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_WORTH_A_SECOND_CHILD = 4  # requests; below, importing cutlass once more takes longer than it saves


@dataclass(frozen=True)
class CompileRequest:
    """One specialisation: constexprs by name (types as scalar names) and an architecture (`sm_90a`)."""

    constexprs: Mapping[str, Any]
    arch: str


@dataclass(frozen=True)
class CompileResult:
    """What came of a request. With `ok` false, `error` says why and the rest may be empty.

    `error_id` is the DSL's own tag (UNSUP_EARLY_EXIT), or CRASH, TIMEOUT; `line` is the port's line, 0 when unknown.
    `spills` are bytes stored and loaded; `cached` means that nothing had to be compiled.
    """

    request: CompileRequest
    ok: bool
    ptx: str = field(default="", repr=False)
    cubin: bytes = field(default=b"", repr=False)
    entry: str = ""
    entries: tuple[str, ...] = ()
    registers: int = 0
    local_bytes: int = 0
    spills: int = 0
    static_smem: int = 0
    seconds: float = 0.0
    error: str = ""
    error_id: str = ""
    file: str = ""
    line: int = 0
    cached: bool = False


@dataclass(frozen=True)
class LaunchShape:
    """What a port's launch_config answered: grid and block (x, y, z), dynamic shared memory in bytes; or its error."""

    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    smem_bytes: int = 0
    error: str = ""
    line: int = 0


class _Died(Exception):
    def __init__(self, error_id: str, text: str):
        super().__init__(text)
        self.error_id = error_id


class _Child:
    """One child process and the pipe to it."""

    def __init__(self, toolchain: Toolchain | None = None) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        root = (toolchain and toolchain.import_path) or str(Path(__file__).resolve().parents[2])
        env = {k: v for k, v in os.environ.items() if _ENV.fullmatch(k) and not _SECRET.search(k)}
        own = "" if toolchain else env.get("PYTHONPATH", "")  # which may lead to another version of the DSL
        env["PYTHONPATH"] = os.pathsep.join(p for p in (root, own) if p)
        env["PORTER_CACHE"] = str(cache_root())
        self.process = subprocess.Popen(
            [toolchain.python if toolchain else sys.executable, "-m", "porter.verify.compile_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=env,
            cwd=tempfile.gettempdir(),
            start_new_session=True,  # Ctrl-C is for porter, which then ends its children
        )
        self._rest = b""

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The answer to a request; raises _Died (and the child is gone) on a crash or after `timeout` seconds."""
        assert self.process.stdin and self.process.stdout
        deadline = time.monotonic() + timeout
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.close()
                    raise _Died("TIMEOUT", f"the compiler did not finish within {timeout:g} s")
                data = os.read(self.process.stdout.fileno(), 1 << 16)
                if not data:
                    raise self._died()
                self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def _died(self) -> _Died:
        code = self.process.wait()
        self.log.seek(0)
        tail = "\n".join(self.log.read().decode(errors="replace").strip().splitlines()[-8:])
        what = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        self.close()
        return _Died("CRASH", f"the compiler process died ({what})" + (f"\n{tail}" if tail else ""))

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.log.close()


class CompileWorkers:
    """Warm children, at most one request at a time in each. Safe to use from several threads.

    `toolchain` names another version of the DSL than the installed one, and the interpreter that has it.
    """

    def __init__(self, toolchain: Toolchain | None = None) -> None:
        self.toolchain = toolchain
        self._idle: list[_Child] = []
        self._lock = threading.Lock()

    def warm(self) -> None:
        """Start a child now, to import cutlass while something else is being done."""
        with self._lock:
            if not self._idle:
                self._idle.append(_Child(self.toolchain))

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The child's answer, or one with ok=False made from its death. A child with outdated modules is replaced."""
        for _ in range(2):
            with self._lock:
                child = self._idle.pop() if self._idle else _Child(self.toolchain)
            try:
                answer = child.ask(request, timeout)
            except _Died as death:
                return {"ok": False, "error": str(death), "error_id": death.error_id, "line": 0, "seconds": 0.0}
            except BaseException:
                child.close()  # interrupted half-way: its next line would answer the wrong question
                raise
            if "stale" not in answer:
                with self._lock:
                    self._idle.append(child)
                return answer
            child.close()
        return {"ok": False, "error": f"{answer['stale']} keeps changing", "error_id": "", "line": 0, "seconds": 0.0}

    @property
    def dsl_version(self) -> str:
        """The version of the DSL that the children import."""
        return self.toolchain.version if self.toolchain else dsl_version()

    def close(self) -> None:
        """End all idle children."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()


_shared = CompileWorkers()
atexit.register(lambda: _shared.close())


def warm() -> None:
    """Start a compile worker in the background (see CompileWorkers.warm)."""
    _shared.warm()


def use_toolchain(toolchain: Toolchain | None) -> None:
    """From now on this process compiles with another version of the DSL; None: the installed one."""
    global _shared
    if toolchain != _shared.toolchain:
        _shared.close()
        _shared = CompileWorkers(toolchain)


def used_dsl_version() -> str:
    """The version of the DSL that this process compiles with."""
    return _shared.dsl_version


def compile_port(
    port_path: str | Path,
    requests: Sequence[CompileRequest],
    timeout: float = 120.0,
    jobs: int = 2,
    kernel: str = "KERNEL",
    flavour: str = "ptx",
    workers: CompileWorkers | None = None,
) -> list[CompileResult]:
    """Compile a port's `KERNEL` for each request, in children; results in the order of the requests.

    Never raises for what is in the port: errors, crashes and time-outs are results. Raises OSError when the file
    cannot be read. A result that the cache has starts no child. `timeout` is in seconds a request.
    """
    path = Path(port_path).resolve()
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        sources = [f"{file.name} {sha}" for file, sha in source_closure(path)]
    except SyntaxError as error:
        text = f"SyntaxError: {error.msg}"
        line = error.lineno or 0
        return [CompileResult(r, False, error=text, error_id="SYNTAX", file=str(path), line=line) for r in requests]
    index, port_cache = ArtifactCache("port-index"), ArtifactCache("port")
    pool = workers or _shared

    def key(request: CompileRequest) -> str:
        constexprs = [f"{k}={v!r}" for k, v in sorted(request.constexprs.items())]
        return digest(["1", *sorted(sources), pool.dsl_version, kernel, flavour, request.arch, *constexprs])

    def cached(request: CompileRequest) -> CompileResult | None:
        entry = index.get(key(request))
        folder = port_cache.get((entry / "key").read_text()) if entry else None
        return _result(request, folder, 0.0, True) if folder else None

    def make(request: CompileRequest) -> CompileResult:
        question = {
            "op": "compile",
            "port": str(path),
            "sha256": sha256,
            "kernel": kernel,
            "constexprs": dict(request.constexprs),
            "arch": request.arch,
            "flavour": flavour,
        }
        answer = pool.ask(question, timeout)
        if not answer["ok"]:
            return CompileResult(
                request,
                False,
                error=answer["error"],
                error_id=answer["error_id"],
                file=str(path),
                line=answer["line"],
                seconds=answer["seconds"],
            )
        folder = Path(answer["folder"])
        index.put(key(request), {"key": folder.name.encode()})
        return _result(request, folder, answer["seconds"], False)

    found = [cached(r) for r in requests]
    missing = [r for r, f in zip(requests, found, strict=True) if f is None]
    if not missing:
        return [f for f in found if f]
    children = max(1, min(jobs, len(missing) // _WORTH_A_SECOND_CHILD + 1))
    with ThreadPoolExecutor(children) as threads:
        made = iter(list(threads.map(make, missing)))
    return [f or next(made) for f in found]


def _result(request: CompileRequest, folder: Path, seconds: float, cached: bool) -> CompileResult:
    made = Compiled(folder)
    return CompileResult(
        request,
        True,
        ptx=made.ptx,
        cubin=made.cubin,
        entry=made.entry,
        entries=made.entries,
        registers=made.registers,
        local_bytes=made.local_bytes,
        spills=made.spill,
        static_smem=made.static_smem,
        seconds=seconds,
        cached=cached,
    )


def launch_shapes(
    port_path: str | Path,
    calls: Sequence[Mapping[str, Any]],
    sm_count: int = 0,
    timeout: float = 30.0,
    function: str = "launch_config",
    workers: CompileWorkers | None = None,
) -> list[LaunchShape]:
    """What the port's plain Python `launch_config(**kwargs)` answers for each call, evaluated in a child.

    `sm_count` is what `runtime.sm_count()` returns meanwhile, for a run without a GPU. Errors are in the results.
    """
    path = Path(port_path).resolve()
    question = {
        "op": "launch_shapes",
        "port": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "function": function,
        "sm_count": sm_count,
        "calls": [dict(c) for c in calls],
    }
    answer = (workers or _shared).ask(question, timeout)
    if not answer["ok"]:
        return [LaunchShape(error=answer["error"], line=answer["line"]) for _ in calls]
    return [
        LaunchShape(error=s["error"], line=s["line"])
        if "error" in s
        else LaunchShape(tuple(s["grid"]), tuple(s["block"]), s["smem"])
        for s in answer["shapes"]
    ]


def resolve_names(
    port_path: str | Path,
    uses: Sequence[tuple[str, Sequence[str]]],
    timeout: float = 60.0,
    workers: CompileWorkers | None = None,
) -> list[dict[str, Any]]:
    """Which (module, attributes) of the installed libraries exist: names.resolve, answered in a child.

    Raises RuntimeError when the child cannot answer. `port_path` is only named in its messages.
    """
    question = {"op": "names", "port": str(port_path), "uses": [[module, list(rest)] for module, rest in uses]}
    answer = (workers or _shared).ask(question, timeout)
    if not answer["ok"]:
        raise RuntimeError(answer["error"])
    return answer["answers"]
