"""The child process that imports ports and compiles them: one JSON request a line on stdin, one JSON answer a line out.

Only compile_worker starts it. cutlass is imported here and nowhere else in porter.verify. Ports are code that a model
may have written: the audit hook below keeps them off the network, which guards against mistakes and is no sandbox.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import re
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from porter.corpus.runtime.sources import source_closure

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_modules: dict[tuple[str, str], Any] = {}  # (path, sha256 of its text) -> module
_seen: dict[Path, str] = {}  # files that imported modules came from, as they were then


class Stale(Exception):
    """A file that this process has imported has changed since: only a new process can compile with the new text."""


def _no_network(event: str, args: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        raise PermissionError("ports compile offline")


def load_port(path: Path, sha256: str) -> Any:
    """The port as a module, imported once per content. Raises Stale, and ValueError for a file edited meanwhile."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError(f"{path} changed while it was being compiled")
    key = (str(path), sha256)
    for file, sha in source_closure(path):
        if file != path.resolve() and _seen.setdefault(file, sha) != sha:
            raise Stale(str(file))
    if key not in _modules:
        _modules[key] = _import(path, sha256)
    return _modules[key]


def _import(path: Path, sha256: str) -> Any:
    package = Path(importlib.import_module("porter").__file__ or "").resolve().parent
    if path.resolve().is_relative_to(package):
        # part of porter's own corpus: by its package name, or its relative imports would not work
        name = ".".join(("porter", *path.resolve().relative_to(package).with_suffix("").parts))
        if _seen.setdefault(path.resolve(), sha256) != sha256:
            raise Stale(str(path))
        return importlib.import_module(name)
    name = f"{path.stem}_{sha256[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the DSL looks functions up by module name
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _compile(request: dict[str, Any]) -> dict[str, Any]:
    kernel = getattr(load_port(Path(request["port"]), request["sha256"]), request["kernel"])
    made = kernel.compile(request["constexprs"], request["arch"], request["flavour"])
    return {"folder": str(made.folder)}


def _launch_shapes(request: dict[str, Any]) -> dict[str, Any]:
    function = getattr(load_port(Path(request["port"]), request["sha256"]), request["function"])
    if request["sm_count"]:
        os.environ["PORTER_SM_COUNT"] = str(request["sm_count"])
    shapes = []
    try:
        for kwargs in request["calls"]:
            try:
                grid, block, smem = function(**kwargs)
                shape = {"grid": [int(v) for v in grid], "block": [int(v) for v in block], "smem": int(smem)}
            except Exception as error:
                shape = _failure(error, request["port"])
            shapes.append(shape)
    finally:
        os.environ.pop("PORTER_SM_COUNT", None)
    return {"shapes": shapes}


def _names(request: dict[str, Any]) -> dict[str, Any]:
    """Look library names up without importing the port."""
    from porter.verify.names import resolve

    return {"answers": resolve(request["uses"])}


def _failure(error: BaseException, port: str) -> dict[str, Any]:
    text = _ANSI.sub("", str(error)).strip() or repr(error)
    if not type(error).__name__.startswith(("DSL", "Compiler")):
        text = f"{type(error).__name__}: {text}"
    found = re.search(r"error\[([A-Z0-9_]+)\]", text)
    return {"error": text, "error_id": found.group(1) if found else "", "line": _line(error, text, port)}


def _line(error: BaseException, text: str, port: str) -> int:
    """The port's line that an error is about, 0 when it names none."""
    ptx = getattr(error, "ptx", "")
    at = re.search(r"ptx input, line (\d+)", text)
    if ptx and at:
        file = re.search(r'\.file\s+(\d+)\s+"' + re.escape(port) + '"', ptx)
        before = "\n".join(ptx.splitlines()[: int(at.group(1))])
        lines = re.findall(rf"\.loc\s+{file.group(1)}\s+(\d+)", before) if file else []
        if lines:
            return int(lines[-1])
    named = re.findall(re.escape(port) + r":(\d+)", text)
    if named:
        return int(named[0])
    if isinstance(error, SyntaxError) and error.filename == port:
        return error.lineno or 0
    frames = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == port]
    return frames[-1] or 0 if frames else 0


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a port prints must not get into the answers
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.addaudithook(_no_network)
    importlib.import_module("cutlass.cute")
    operations = {"compile": _compile, "launch_shapes": _launch_shapes, "names": _names}
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        try:
            answer = {"ok": True, **operations[request["op"]](request)}
        except Stale as stale:
            answer = {"ok": False, "stale": str(stale)}
        except (Exception, SystemExit) as error:
            answer = {"ok": False, **_failure(error, request["port"])}
        answer["seconds"] = time.perf_counter() - start
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
