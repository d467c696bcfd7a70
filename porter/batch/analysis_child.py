"""The child process of `--analyze`: reads one JSON request a line (a file), answers with one JSON event a line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from porter import codes
from porter.case.instances import instance_values
from porter.config import PortConfig
from porter.model import Hole, Instance, KernelInfo, PorterError
from porter.report.console import StageEvent
from porter.report.internal_errors import internal_error
from porter.wording import plural

if TYPE_CHECKING:
    from porter import ir
    from porter.frontend.parse.source import ParsedUnit
    from porter.verify.compile.worker import CompileResult
    from porter.verify.run_outcome import Outcome

COMPILE_SECONDS = 60.0  # for one instance
RUN_SECONDS = 120.0  # for one instance: the original is compiled and tried, then the port is run
_REACHED = {"parse": "lowered", "emit": "emitted"}  # what the end of a stage says of a kernel
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

    from porter.pipeline.compile_commands import with_build_flags
    from porter.pipeline.inputs import parse

    path = Path(request["path"])
    config = PortConfig(
        include=tuple(request["include"]),
        define=tuple(request["define"]),
        math=tuple(request["math"]),
        pre_include=tuple(request["pre_include"]),
        build=Path(request["build"]) if request["build"] else None,
        std=request["std"],
        arch=(request["arch"],),
        verify=False,
    )
    try:
        config = with_build_flags(config, path)
        unit = parse(path, config)
    except PorterError as error:
        say("file", code=error.diagnostics[0].code, message=error.diagnostics[0].message)
        return
    if not unit.kernels and unit.header_kernels:
        first = unit.header_kernels[0]
        others = f"{plural(len(unit.header_kernels), 'kernel')} in its headers, such as {first.name} ({first.span})"
        message = f"{path} has no kernel of its own, but {others}: name one with porter port --kernel"
        say("file", code=codes.NO_KERNEL, message=message)
        return
    for info in unit.kernels:
        key = f"{info.qualified_name}:{info.span.line}:{info.span.col}"
        if key in request["skip"]:
            continue
        found = {"file": str(path), "kernel": info.name, "line": info.span.line, "parsed": not info.errors}
        say("kernel", id=key, **found)
        start = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):
            found |= analyze_kernel(
                unit, info, config, request["compile"], request["run"], lambda known: say("known", **known)
            )
        say("result", id=key, seconds=round(time.perf_counter() - start, 3), **found)
    say("done")


def analyze_kernel(
    unit: Any,
    info: KernelInfo,
    config: PortConfig,
    compile_too: bool,
    run_too: bool = False,
    known: Callable[[dict[str, Any]], None] = lambda found: None,
) -> dict[str, Any]:
    """How far one kernel gets: lowered at two instances when it is a template, then planned and emitted, compiled, run.

    `known` is told what is found before anything of the kernel runs, since that may end this process.
    """
    from porter.pipeline.drafts import compiled, drafted
    from porter.pipeline.inputs import are_guessed, case_if_any, choose_instances
    from porter.pipeline.stages import Run, translate

    def told(event: StageEvent) -> None:
        if event.state == "done" and event.stage in _REACHED:
            found[_REACHED[event.stage]] = True

    unlimited = replace(config, cpu_limit=0)  # whoever started this process watches its time
    found: dict[str, Any] = {"lowered": False, "emitted": False, "holes": {}, "instances": [], "code": "", "error": ""}
    try:
        case = case_if_any(unit, info, config)
        instances = choose_instances(unit, info, case, config)[:2]
        found["instances"] = [str(i) for i in instances]
        found["guessed"] = are_guessed(unit, info, case, config)
        translation = translate(unit, info, case, unlimited, Run(info.name, told), instances)
        module, kernels, instances = translation.module, translation.kernels, translation.instances
        found["instances"] = [str(i) for i in instances]
        found["holes"] = count(module.holes)
        if compile_too and not module.holes:
            with drafted(module.text, "port.py") as draft:
                made = compiled(draft, info, instances, config.arch, 1, COMPILE_SECONDS)
            error = next((f"does not compile: {r.error}" for r in made if not r.ok), "")
            found |= {"compiled": not error, "error": error}
            if run_too and not error:
                known(found)
                found["runs"] = run_all(unit, info, instances, kernels, made)
    except PorterError as error:
        found["code"], found["error"] = error.diagnostics[0].code, error.diagnostics[0].message
    except RecursionError:
        found["code"], found["error"] = codes.INTERNAL_ERROR, "internal error: the kernel is nested too deeply"
    except Exception as error:
        import traceback

        found["code"], found["error"] = codes.INTERNAL_ERROR, internal_error(error, traceback.format_exc()).message
    return found


def count(holes: tuple[Hole, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for hole in holes:
        counts[hole.code] = counts.get(hole.code, 0) + 1
    return counts


class _TooLong(Exception):
    """An instance took longer than RUN_SECONDS."""


def run_all(
    unit: ParsedUnit,
    info: KernelInfo,
    instances: Sequence[Instance],
    kernels: Sequence[ir.Kernel],
    made: Sequence[CompileResult],
) -> list[dict[str, Any]]:
    """One small launch of original and port of each instance, as porter.verify.side_by_side tells it."""
    from porter.patterns.symbols import same_symbols
    from porter.verify.launches.made_up import threads_of_block
    from porter.verify.run_outcome import NOT_RUN, Outcome

    outcomes = []
    for instance, kernel, port in zip(instances, same_symbols(list(kernels)), made, strict=True):
        values = instance_values(info, instance)
        threads = threads_of_block(kernel, unit.launches, unit.source.text, values)

        def stop(*_: object) -> None:
            raise _TooLong

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, RUN_SECONDS)
        try:
            outcome = run_one(unit, info, instance, kernel, port, threads)
        except _TooLong:
            outcome = Outcome(str(instance), NOT_RUN, detail=f"did not finish within {RUN_SECONDS:g} s")
        except PorterError as error:
            outcome = Outcome(str(instance), NOT_RUN, detail=f"the original: {error.diagnostics[0].message}")
        except Exception as error:
            outcome = Outcome(str(instance), NOT_RUN, detail=f"internal error: {type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        outcomes.append(asdict(replace(outcome, detail=outcome.detail[:400])))
    return outcomes


def run_one(
    unit: ParsedUnit, info: KernelInfo, instance: Instance, kernel: ir.Kernel, port: CompileResult, threads: int
) -> Outcome:
    from porter.verify.backends.interface import Build
    from porter.verify.original.build import build_original
    from porter.verify.original.undefined_reads import undefined_reads
    from porter.verify.run_outcome import DIFFERS, FAULTS
    from porter.verify.side_by_side import side_by_side

    (build,) = build_original(unit.source, unit.options, info, (instance,), unit=unit)
    original = Build("original", build.ptx, build.entry, unit.options.arch)
    ported = Build("port", port.ptx, port.entry, unit.options.arch)
    outcome = side_by_side(str(instance), kernel.params, original, ported, threads, kernel.symbols)
    reads = undefined_reads(kernel) if outcome.outcome == DIFFERS else []
    if reads:  # equality was never to be had
        place = f"{Path(reads[0].span.file).name}:{reads[0].span.line}"
        return replace(outcome, outcome=FAULTS, detail=f"{place} {reads[0].what}; {outcome.detail}")
    return outcome


if __name__ == "__main__":
    main()
