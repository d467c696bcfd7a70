"""Compiles ports in fenced child processes, so that a crash, a hang or a hostile port is an answer and no accident.

CuTeDSL may segfault on a wrong program and is not thread-safe. A server imports cutlass once (about a second) and forks
a child for each port; one that dies is reported with its request. A child writes only its own folder: what it compiled
gets into the cache from here, under a key that is made here.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from porter.corpus.runtime import ArtifactCache, Compiled, digest
from porter.corpus.runtime.dsl import FORMAT, dsl_version
from porter.corpus.runtime.sources import source_closure
from porter.verify.compile.artifacts import OPTIONAL_FILES, PORT, REQUIRED_FILES, checked, with_path, without_path
from porter.verify.compile.dsl_environments import Toolchain
from porter.verify.compile.fork_client import CompilerDied, ForkedChild, ForkServer

# What the server may see of the environment: enough to find Python and libraries; no keys, no proxies.
_ENV = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TMPDIR|PYTHON\w*|VIRTUAL_ENV|LD_LIBRARY_PATH|CUDA_\w+|CUTE_DSL_\w+|PORTER_NAME_PREFIX"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_WORTH_A_SECOND_CHILD = 4  # requests; below, importing the port once more takes longer than it saves
_IDLE = 3  # children that wait, for the ports used last: each holds some 35 MiB of its own


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
class LaunchAnswer:
    """What a port's launch_config answered: grid and block (x, y, z), dynamic shared memory in bytes; or its error."""

    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    smem_bytes: int = 0
    error: str = ""
    line: int = 0


class CompileWorkers:
    """Warm children, each for one port and with at most one request at a time. Safe to use from several threads.

    A child that has imported a port serves no other, so that nothing a port does can reach the compile of the next.
    `toolchain` names another version of the DSL than the installed one, and the interpreter that has it.
    """

    def __init__(self, toolchain: Toolchain | None = None) -> None:
        self.toolchain = toolchain
        self._server: ForkServer | None = None
        self._idle: list[tuple[str, ForkedChild]] = []  # (whose, child), used longest ago first
        self._lock = threading.Lock()

    def warm(self) -> None:
        """Start the server now, to import cutlass while something else is being done."""
        self._started()

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The answer of the request's own child, or one with ok=False made from its death."""
        try:
            with self.answering(request, timeout) as (answer, _):
                return answer
        except CompilerDied as death:
            return _dead(death)

    @contextlib.contextmanager
    def answering(self, request: Mapping[str, Any], timeout: float) -> Iterator[tuple[dict[str, Any], ForkedChild]]:
        """An answer and the child that gave it, whose folder is there meanwhile. Raises CompilerDied."""
        sources = request["sources"]
        # names are looked up where no port has been imported
        owner = "" if request["op"] == "names" else json.dumps(sources)
        files = [Path(file) for file, _ in sources] if owner else []
        for attempt in (1, 2):
            child = self._take(owner) or self._started().child(files)
            try:
                answer = child.ask(request, timeout)
                if "stale" not in answer:
                    yield answer, child
                    break
            except BaseException:
                child.close()  # dead, or interrupted half-way: its next line would answer the wrong question
                raise
            child.close()
            self.close()  # the server has imported a file that has been edited since
            if attempt == 2:
                raise CompilerDied("CRASH", f"{answer['stale']} keeps changing")
        with self._lock:
            self._idle.append((owner, child))
            spare = [self._idle.pop(0)[1] for _ in range(len(self._idle) - _IDLE)]
        for old in spare:
            old.close()

    def _take(self, owner: str) -> ForkedChild | None:
        with self._lock:
            for n, (of, child) in enumerate(self._idle):
                if of == owner:
                    del self._idle[n]
                    return child
        return None

    def _started(self) -> ForkServer:
        with self._lock:
            if self._server is None or not self._server.alive:
                python = self.toolchain.python if self.toolchain else sys.executable
                self._server = ForkServer(python, "porter.verify.compile.child", _environment(self.toolchain))
            return self._server

    @property
    def dsl_version(self) -> str:
        """The version of the DSL that the children import."""
        return self.toolchain.version if self.toolchain else dsl_version()

    def close(self) -> None:
        """End the server and all idle children."""
        with self._lock:
            idle, self._idle = self._idle, []
            server, self._server = self._server, None
        for _, child in idle:
            child.close()
        if server is not None:
            server.close()


def _environment(toolchain: Toolchain | None) -> dict[str, str]:
    root = (toolchain and toolchain.import_path) or str(Path(__file__).resolve().parents[3])
    env = {k: v for k, v in os.environ.items() if _ENV.fullmatch(k) and not _SECRET.search(k)}
    own = "" if toolchain else env.get("PYTHONPATH", "")  # which may lead to another version of the DSL
    env["PYTHONPATH"] = os.pathsep.join(p for p in (root, own) if p)
    return env


def _dead(death: CompilerDied) -> dict[str, Any]:
    return {"ok": False, "error": str(death), "error_id": death.error_id, "line": 0, "seconds": 0.0}


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
    try:
        closure = source_closure(path)
    except SyntaxError as error:
        text = f"SyntaxError: {error.msg}"
        line = error.lineno or 0
        return [CompileResult(r, False, error=text, error_id="SYNTAX", file=str(path), line=line) for r in requests]
    sources = [f"{file.name} {sha}" for file, sha in closure]
    cache = ArtifactCache("compiled")
    pool = workers or _shared

    def key(request: CompileRequest) -> str:
        constexprs = [f"{k}={v!r}" for k, v in sorted(request.constexprs.items())]
        return digest([FORMAT, PORT, *sorted(sources), pool.dsl_version, kernel, flavour, request.arch, *constexprs])

    def cached(request: CompileRequest) -> CompileResult | None:
        folder = cache.get(key(request))
        return _result(request, path, folder, 0.0, True) if folder else None

    def make(request: CompileRequest) -> CompileResult:
        question = {
            "op": "compile",
            "port": str(path),
            "sources": _named(closure),
            "kernel": kernel,
            "constexprs": dict(request.constexprs),
            "arch": request.arch,
            "flavour": flavour,
        }
        try:
            with pool.answering(question, timeout) as (answer, child):
                if answer["ok"]:
                    files = checked(child.take(answer["folder"], REQUIRED_FILES, OPTIONAL_FILES), request.arch)
                    files["kernel.ptx"] = without_path(files["kernel.ptx"], path)
                    return _result(request, path, cache.put(key(request), files), answer["seconds"], False)
        except CompilerDied as death:
            answer = _dead(death)
        except (ValueError, KeyError, TypeError) as error:
            answer = _dead(CompilerDied("CRASH", f"the compiler process gave an invalid answer: {error}"))
        return CompileResult(
            request,
            False,
            error=str(answer["error"]),
            error_id=str(answer["error_id"]),
            file=str(path),
            line=int(answer["line"]),
            seconds=answer["seconds"],
        )

    found = [cached(r) for r in requests]
    missing = [r for r, f in zip(requests, found, strict=True) if f is None]
    if not missing:
        return [f for f in found if f]
    children = max(1, min(jobs, len(missing) // _WORTH_A_SECOND_CHILD + 1))
    with ThreadPoolExecutor(children) as threads:
        made = iter(list(threads.map(make, missing)))
    return [f or next(made) for f in found]


def _result(request: CompileRequest, port: Path, folder: Path, seconds: float, cached: bool) -> CompileResult:
    made = Compiled(folder)
    return CompileResult(
        request,
        True,
        ptx=with_path(made.ptx, port),
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
) -> list[LaunchAnswer]:
    """What the port's plain Python `launch_config(**kwargs)` answers for each call, evaluated in a child.

    `sm_count` is what `runtime.sm_count()` returns meanwhile, for a run without a GPU. Errors are in the results.
    """
    path = Path(port_path).resolve()
    question = {
        "op": "launch_shapes",
        "port": str(path),
        "sources": _named(source_closure(path)),
        "function": function,
        "sm_count": sm_count,
        "calls": [dict(c) for c in calls],
    }
    answer = (workers or _shared).ask(question, timeout)
    if not answer["ok"]:
        return [LaunchAnswer(error=answer["error"], line=answer["line"]) for _ in calls]
    shapes = [_launch_shape(s) for s in answer["shapes"]]
    return shapes if len(shapes) == len(calls) else [LaunchAnswer(error="not an answer to each call") for _ in calls]


def entry_answers(
    port_path: str | Path,
    calls: Sequence[Mapping[str, Any]],
    timeout: float = 60.0,
    workers: CompileWorkers | None = None,
) -> dict[str, Any]:
    """What each call of the port's torch-facing functions did (see entry.child), {"ok": true, "answers": [...]}; with
    "ok" false, "error" and "line" say why there is no answer."""
    path = Path(port_path).resolve()
    question = {
        "op": "entry",
        "port": str(path),
        "sources": _named(source_closure(path)),
        "calls": [dict(c) for c in calls],
    }
    return (workers or _shared).ask(question, timeout)


def _named(closure: Sequence[tuple[Path, str]]) -> list[tuple[str, str]]:
    return [(str(file), sha) for file, sha in closure]


def _launch_shape(answer: Any) -> LaunchAnswer:
    try:
        if "error" in answer:
            return LaunchAnswer(error=str(answer["error"]), line=int(answer["line"]))
        grid, block = (tuple(int(v) for v in answer[name]) for name in ("grid", "block"))
        return LaunchAnswer(grid, block, int(answer["smem"]))
    except (KeyError, TypeError, ValueError) as error:
        return LaunchAnswer(error=f"not a launch: {error}")


def resolve_names(
    port_path: str | Path,
    uses: Sequence[tuple[str, Sequence[str]]],
    timeout: float = 60.0,
    workers: CompileWorkers | None = None,
) -> list[dict[str, Any]]:
    """Which (module, attributes) of the installed libraries exist: names.resolve, answered in a child.

    Raises RuntimeError when the child cannot answer. `port_path` is only named in its messages.
    """
    question = {
        "op": "names",
        "port": str(port_path),
        "sources": _named(source_closure(Path(port_path).resolve())),
        "uses": [[module, list(rest)] for module, rest in uses],
    }
    answer = (workers or _shared).ask(question, timeout)
    if not answer["ok"]:
        raise RuntimeError(answer["error"])
    return answer["answers"]
