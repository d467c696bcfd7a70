"""The processes that import ports and compile them: one JSON request a line, one JSON answer a line.

Only compile_worker starts them. cutlass is imported here and nowhere else in porter.verify. Ports are code that a model
or a stranger may have written: each is imported in a fenced child of its own (fork_server, fence), never in the server.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from porter.corpus.runtime import cache_root
from porter.corpus.runtime.sources import source_closure
from porter.verify.compile.fork_server import run_server

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_modules: dict[tuple[str, str], Any] = {}  # (path, sha256 of its text) -> module
_imported: dict[str, str] = {}  # files that the server has imported, with their sha256 at that time


class Stale(Exception):
    """A file that the server has imported has changed since: only a new server can compile with the new text."""


def check_sources(sources: list[tuple[str, str]]) -> None:
    """Raise Stale when the server imported other text than the parent saw. `sources`: files and their sha256."""
    for file, sha in sources:
        if _imported.get(_place(file), sha) != sha:
            raise Stale(file)


def _place(file: str) -> str:
    """A file of the corpus as seen from there: the parent may have imported porter from another folder."""
    return file.rpartition("/porter/corpus/")[2] if "/porter/corpus/" in file else file


def load_port(path: Path, sources: list[tuple[str, str]]) -> Any:
    """The port as a module, imported once. `sources` are it and what it imports, with their sha256, as the parent saw
    them. Raises Stale, and ValueError for a file edited meanwhile."""
    check_sources(sources)
    closure = source_closure(path)
    found = {_place(str(file)): sha for file, sha in closure}
    changed = [file for file, sha in sources if found.get(_place(file)) != sha]
    if changed or len(found) != len(sources):
        raise ValueError(f"{changed[0] if changed else path} changed while it was being compiled")
    sha256 = dict(closure)[path.resolve()]
    key = (str(path), sha256)
    if key not in _modules:
        _modules[key] = _import(path, sha256)
    return _modules[key]


def _import(path: Path, sha256: str) -> Any:
    package = Path(importlib.import_module("porter").__file__ or "").resolve().parent
    if path.resolve().is_relative_to(package):
        # part of porter's own corpus: by its package name, or its relative imports would not work
        name = ".".join(("porter", *path.resolve().relative_to(package).with_suffix("").parts))
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
    kernel = getattr(load_port(Path(request["port"]), request["sources"]), request["kernel"])
    made = kernel.compile(request["constexprs"], request["arch"], request["flavour"])
    return {"folder": str(made.folder.relative_to(cache_root()))}


def _launch_shapes(request: dict[str, Any]) -> dict[str, Any]:
    function = getattr(load_port(Path(request["port"]), request["sources"]), request["function"])
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


def _entry(request: dict[str, Any]) -> dict[str, Any]:
    """Call the port's torch-facing functions with stand-ins for tensors."""
    from porter.verify.checks.entry.child import call_all

    module = load_port(Path(request["port"]), request["sources"])
    return call_all(module, request, lambda error: _failure(error, request["port"]), "torch" in sys.modules)


def _names(request: dict[str, Any]) -> dict[str, Any]:
    """Look library names up without importing the port."""
    from porter.verify.checks.names import resolve

    check_sources(request["sources"])
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


def serve(requests: Any, answers: Any) -> None:
    """Answer requests until there are none. Runs in a fenced child."""
    operations = {"compile": _compile, "launch_shapes": _launch_shapes, "entry": _entry, "names": _names}
    for line in requests:
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


def main() -> None:
    """The server: its standard input is the socket that compile_worker asks through."""
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    importlib.import_module("cutlass.cute")
    importlib.import_module("cutlass.cute.runtime")
    importlib.import_module("porter.verify.checks.names")
    lib = importlib.import_module("porter.corpus.lib").__file__
    assert lib
    _imported.update((_place(str(file)), sha) for file, sha in source_closure(Path(lib)))
    run_server(control, serve)
    os._exit(0)  # unloading what was imported takes a second


if __name__ == "__main__":
    main()
