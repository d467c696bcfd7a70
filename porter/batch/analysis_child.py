"""The child process of `--analyze`: reads one JSON request a line (a file), answers with one JSON event a line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from porter.case.instances import instance_values
from porter.config import PortConfig
from porter.model import Hole, KernelInfo, PorterError
from porter.report.internal_errors import internal_error

COMPILE_SECONDS = 60.0  # for one instance
MEMORY_BYTES = 6 << 30  # a kernel that needs more is reported as a crash, and the machine lives


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print must not mix with the answers
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.setrecursionlimit(20_000)
    for line in sys.stdin:
        analyze(json.loads(line), answers)


def analyze(request: dict[str, Any], answers: TextIO) -> None:
    """All kernels of one file but those to skip; an event when each begins and ends."""

    def say(event: str, **values: Any) -> None:
        answers.write(json.dumps({"event": event, **values}) + "\n")
        answers.flush()

    from porter.pipeline.inputs import parse

    path = Path(request["path"])
    config = PortConfig(
        include=tuple(request["include"]),
        define=tuple(request["define"]),
        std=request["std"],
        arch=(request["arch"],),
        verify=False,
    )
    try:
        unit = parse(path, config)
    except PorterError as error:
        say("file", code=error.diagnostics[0].code, message=error.diagnostics[0].message)
        return
    for info in unit.kernels:
        key = f"{info.qualified_name}:{info.span.line}:{info.span.col}"
        if key in request["skip"]:
            continue
        found = {"file": str(path), "kernel": info.name, "line": info.span.line, "parsed": not info.errors}
        say("kernel", id=key, **found)
        start = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):
            found |= analyze_kernel(unit, info, config, request["compile"])
        say("result", id=key, seconds=round(time.perf_counter() - start, 3), **found)
    say("done")


def analyze_kernel(unit: Any, info: KernelInfo, config: PortConfig, compile_too: bool) -> dict[str, Any]:
    """How far one kernel gets: lowered at two instances when it is a template, then planned and emitted."""
    from porter.emit.module import emit_module
    from porter.emit.plan import PlanOptions, make_plan
    from porter.pipeline.inputs import case_if_any, choose_instances
    from porter.pipeline.stages import lower

    found: dict[str, Any] = {"lowered": False, "emitted": False, "holes": {}, "instances": [], "code": "", "error": ""}
    try:
        case = case_if_any(unit, info, config)
        instances = choose_instances(unit, info, case, config)[:2]
        found["instances"] = [str(i) for i in instances]
        kernels = lower(unit, info, instances, case)
        found["lowered"] = True
        module = emit_module(make_plan(list(kernels), info, case, PlanOptions(False, unit.source, instances)))
        found["emitted"] = True
        found["holes"] = count(module.holes)
        if compile_too and not module.holes:
            error = compile_error(module.text, [instance_values(info, i) for i in instances], config.arch[0])
            found |= {"compiled": not error, "error": error}
    except PorterError as error:
        found["code"], found["error"] = error.diagnostics[0].code, error.diagnostics[0].message
    except RecursionError:
        found["code"], found["error"] = "PRT950", "internal error: the kernel is nested too deeply"
    except Exception as error:
        import traceback

        found["code"], found["error"] = "PRT950", internal_error(error, traceback.format_exc()).message
    return found


def count(holes: tuple[Hole, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for hole in holes:
        counts[hole.code] = counts.get(hole.code, 0) + 1
    return counts


def compile_error(text: str, instances: Sequence[Mapping[str, Any]], arch: str) -> str:
    """Compile a port at all its instances; the first error, or ""."""
    from porter.verify.compile.worker import CompileRequest, compile_port

    requests = [CompileRequest(values, arch) for values in instances]
    with tempfile.TemporaryDirectory(prefix="porter-analyze-") as folder:
        port = Path(folder) / "port.py"
        port.write_text(text, encoding="utf-8")
        for result in compile_port(port, requests, timeout=COMPILE_SECONDS, jobs=1):
            if not result.ok:
                return f"does not compile: {result.error}"
    return ""


if __name__ == "__main__":
    main()
