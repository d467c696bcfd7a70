"""`porter port --analyze`: what could be ported in files and folders, and the effort left. Writes nothing a user keeps.

Each file is worked on in a child process (porter.batch.analysis_child): a crash or an endless loop costs one kernel.
"""

from __future__ import annotations

import json
import os
import selectors
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter import codes
from porter.batch.pool import ChildPool, ChildProcess
from porter.config import PortConfig, worker_count
from porter.files.folders import files_below
from porter.model import Diagnostic, PorterError
from porter.source import Span
from porter.verify.run_outcome import DIFFERS, EQUAL, FAULTS, NOT_RUN
from porter.wording import plural

if TYPE_CHECKING:
    from rich.console import Console

ENDINGS = (".cu", ".cuh", ".h", ".hpp", ".inl")
PARSE_SECONDS = 60.0  # for a file, before its first kernel
COMPILE_SECONDS = 180.0  # for the instances of a kernel, when they are compiled too
RUN_SECONDS = 300.0  # when they are run too

# How long a person is likely to need for a hole of each family: minutes for one expression or attribute, hours where
# the kernel's structure has to change.
HOURS = ("1", "3", "4")


@dataclass(frozen=True)
class KernelAnalysis:
    """One __global__ definition. `instances` are those tried; `error` is why it got no further."""

    file: str
    kernel: str
    line: int = 0
    parsed: bool = False
    lowered: bool = False
    emitted: bool = False
    compiled: bool | None = None  # None: not tried
    instances: tuple[str, ...] = ()
    holes: dict[str, int] = field(default_factory=dict)
    code: str = ""
    error: str = ""
    seconds: float = 0.0
    guessed: bool = False  # nobody named the instances, and no launch does
    runs: tuple[dict[str, Any], ...] = ()  # by instance: see porter.verify.run_outcome

    @property
    def outcome(self) -> str:
        """What running its instances showed: the worst of those whose original runs clean; "" when it was not tried."""
        found = {r["outcome"] for r in self.runs}
        return next((o for o in (DIFFERS, EQUAL, NOT_RUN, FAULTS) if o in found), "")

    @property
    def clean(self) -> bool:
        """Emitted without a hole."""
        return self.emitted and not self.holes

    @property
    def effort(self) -> str:
        """none, minutes or hours."""
        if self.clean:
            return "none"
        if not self.parsed:
            return "minutes"  # an include folder or a macro is missing
        if not self.emitted or sum(self.holes.values()) > 5 or any(code[3:4] in HOURS for code in self.holes):
            return "hours"
        return "minutes"


@dataclass(frozen=True)
class Analysis:
    kernels: tuple[KernelAnalysis, ...]
    files: int
    diagnostics: tuple[Diagnostic, ...] = ()


FileAnalysis = tuple[list[KernelAnalysis], list[Diagnostic]]  # the kernels of a file, and what is wrong with the file


def find_sources(paths: Sequence[Path]) -> list[Path]:
    """The files named, and those below folders whose text has a __global__; in order. Raises PorterError PRT010."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            for file in files_below(path, *ENDINGS):
                if b"__global__" in file.read_bytes():
                    found[file] = None
        elif path.is_file():
            found[path] = None
        else:
            raise PorterError(
                Diagnostic(codes.UNREADABLE_SOURCE, f"there is no file or folder {path}", Span(str(path), 0))
            )
    return list(found)


def analyze_paths(
    paths: Sequence[Path],
    config: PortConfig,
    time_limit: float,
    say: Callable[[str], None],
    compile_too: bool = False,
    run_too: bool = False,
) -> Analysis:
    """Analyse every kernel of the given files and folders, `jobs` files at a time, `time_limit` seconds a kernel.

    `run_too` compiles as well. `say` is told of each file, and of each kernel that is run.
    """
    compile_too = compile_too or run_too
    extra = (COMPILE_SECONDS if compile_too else 0) + (RUN_SECONDS if run_too else 0)
    files = find_sources(paths)
    run = _Run(files, config, time_limit + extra, say, compile_too, run_too)
    results = run.run()
    kernels = tuple(k for found, _ in results for k in found)
    return Analysis(kernels, len(files), tuple(m for _, messages in results for m in messages))


class _Run(ChildPool["AnalysisChild", "FileAnalysis"]):
    """Files in children, each a kernel at a time."""

    doing = "analyzing"

    def __init__(
        self,
        files: list[Path],
        config: PortConfig,
        time_limit: float,
        say: Callable[[str], None],
        compile_too: bool,
        run_too: bool,
    ):
        super().__init__(files, worker_count(config))
        self.config, self.time_limit, self.say = config, time_limit, say
        self.compile_too, self.run_too = compile_too, run_too

    def start(self) -> AnalysisChild:
        return AnalysisChild(self.config, self.compile_too, run_too=self.run_too)

    def result(self, child: AnalysisChild, number: int) -> FileAnalysis:
        file = self.tasks[number]
        kernels, messages = analyze_file(child, file, self.time_limit, self.say if self.run_too else None)
        clean = sum(k.clean for k in kernels)
        told = f", {sum(k.outcome == EQUAL for k in kernels)} equal to their original" if self.run_too else ""
        self.say(f"{file}: {plural(len(kernels), 'kernel')}, {clean} without a hole{told}")
        return kernels, messages

    def failed(self, message: Diagnostic) -> FileAnalysis:
        return [], [message]


def analyze_file(
    child: AnalysisChild, file: Path, time_limit: float, say: Callable[[str], None] | None = None
) -> FileAnalysis:
    """The kernels of one file. A kernel that takes the child down or too long is reported, and the rest done anew."""
    done: dict[str, KernelAnalysis] = {}
    current: dict[str, Any] | None = None
    while True:
        ended = ""
        for event in child.ask({"path": str(file), "skip": list(done)}, time_limit):
            if event["event"] == "kernel":
                current = event
            elif event["event"] == "result":
                found = done[event["id"]] = _analysis(event)
                if say is not None and found.runs:
                    say(f"{file}:{found.line}: {found.kernel}: {found.outcome}")
                current = None
            elif event["event"] == "known":
                assert current is not None
                current = current | event | {"event": "known"}
            elif event["event"] == "file":
                message = Diagnostic(event["code"], event["message"], Span(str(file), 0))
                return list(done.values()), [message]
            else:
                ended = event["event"]
        if ended == "done":
            return list(done.values()), []
        if current is None:  # died while parsing: no kernel to blame
            return list(done.values()), [Diagnostic(codes.INTERNAL_ERROR, f"parsing {ended}", Span(str(file), 0))]
        if current["event"] == "known":  # it was the emulator, or time ran out: all else is known
            runs = [{"instance": i, "outcome": NOT_RUN, "detail": ended} for i in current["instances"]]
            done[current["id"]] = _analysis(current | {"runs": runs})
        else:
            done[current["id"]] = KernelAnalysis(
                str(file),
                current["kernel"],
                current["line"],
                parsed=current["parsed"],
                code=codes.INTERNAL_ERROR,
                error=ended,
            )
        current = None


def _analysis(event: dict[str, Any]) -> KernelAnalysis:
    value = {k: v for k, v in event.items() if k not in ("event", "id")}
    value |= {"instances": tuple(value["instances"]), "runs": tuple(value.get("runs", ()))}
    return KernelAnalysis(**value)


class AnalysisChild:
    """A warm porter.batch.analysis_child; started when first asked, replaced after a crash."""

    def __init__(
        self,
        config: PortConfig,
        compile_too: bool,
        module: str = "porter.batch.analysis_child",
        run_too: bool = False,
    ):
        self.module = module
        self.settings = {
            "include": list(config.include),
            "define": list(config.define),
            "std": config.std,
            "arch": config.arch[0],
            "math": list(config.math),
            "pre_include": list(config.pre_include),
            "build": str(config.build or ""),
            "compile": compile_too,
            "run": run_too,
        }
        self.process: ChildProcess | None = None
        self.stopped = False

    @property
    def alive(self) -> bool:
        return not self.stopped

    def ask(self, request: dict[str, Any], time_limit: float) -> Iterator[dict[str, Any]]:
        """The child's events about one file; the last one is `done`, or says how the child ended."""
        if self.stopped:
            yield {"event": "was stopped"}
            return
        if self.process is None or not self.process.alive:
            self.process = ChildProcess(self.module, sys.path, quiet=True)
        requests, answers = self.process.requests, self.process.answers
        try:
            requests.write(json.dumps(self.settings | request).encode() + b"\n")
            requests.flush()
        except BrokenPipeError:
            yield {"event": self.ending()}
            return
        rest = b""
        limit = time.monotonic() + PARSE_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(answers, selectors.EVENT_READ)
            while True:
                line, newline, rest = rest.partition(b"\n")
                if newline:
                    event = json.loads(line)
                    yield event
                    if event["event"] in ("done", "file"):
                        return
                    limit = time.monotonic() + time_limit
                    continue
                rest = line
                if not selector.select(max(0.0, limit - time.monotonic())):
                    self.close()
                    yield {"event": f"did not finish within {time_limit:g} s"}
                    return
                data = os.read(answers.fileno(), 1 << 16)
                if not data:
                    yield {"event": self.ending()}
                    return
                rest += data

    def ending(self) -> str:
        assert self.process
        code = self.process.process.wait()
        self.close()
        return f"ended the process (signal {-code})" if code < 0 else f"ended the process (exit code {code})"

    def stop(self) -> None:
        """End the process now, for good; the thread that reads from it sees it end."""
        self.stopped = True
        self._kill()

    def close(self) -> None:
        """End the process; the next question starts another."""
        if self.process is not None:
            self._kill()
            self.process.close()
            self.process = None

    def _kill(self) -> None:
        child = self.process
        if child is not None and child.alive:
            child.process.kill()


# ---------------------------------------------------------------- printing


def count_codes(kernels: Sequence[KernelAnalysis]) -> dict[str, int]:
    """How many kernels each code stops, most first."""
    counts: dict[str, int] = {}
    for k in kernels:
        for code in {*k.holes, *([k.code] if k.code else [])}:
            counts[code] = counts.get(code, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def totals(analysis: Analysis) -> dict[str, int]:
    ks = analysis.kernels
    found = {
        "files": analysis.files,
        "kernels": len(ks),
        "parsed": sum(k.parsed for k in ks),
        "lowered": sum(k.lowered for k in ks),
        "emitted": sum(k.emitted for k in ks),
        "without_a_hole": sum(k.clean for k in ks),
    }
    if any(k.compiled is not None for k in ks):
        found["compiled"] = sum(bool(k.compiled) and k.clean for k in ks)
    if any(k.runs for k in ks):
        found |= {o.replace(" ", "_"): sum(k.outcome == o for k in ks) for o in (EQUAL, DIFFERS, FAULTS, NOT_RUN)}
    return found


def print_analysis(analysis: Analysis, out: Console) -> None:
    """One row per kernel, then totals and the codes that stop most kernels."""
    from rich.table import Table

    run = any(k.runs for k in analysis.kernels)
    table = Table(box=None, pad_edge=False)
    for name in ("file", "kernel", "parsed", "lowered", "compiled", *(["run"] if run else []), "holes", "effort"):
        table.add_column(name, no_wrap=True)
    for k in analysis.kernels:
        holes = " ".join(f"{code}x{n}" if n > 1 else code for code, n in sorted(k.holes.items())) or k.code
        compiled = "-" if k.compiled is None else yes(k.compiled)
        ran = [k.outcome or "-"] if run else []
        table.add_row(f"{k.file}:{k.line}", k.kernel, yes(k.parsed), yes(k.lowered), compiled, *ran, holes, k.effort)
    out.print(table)
    for k in analysis.kernels:
        for r in k.runs:
            if r["outcome"] != EQUAL:
                text = f"{k.file}:{k.line}: {k.kernel}{r['instance']}: {r['outcome']}: {r['detail']}"
                out.print(text, markup=False, highlight=False)
    for k in analysis.kernels:
        if k.code:
            text = f"{k.file}:{k.line}: {k.kernel}: {k.code} {k.error}"
            out.print(text, markup=False, highlight=False)
    t = totals(analysis)
    out.print("\n" + ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in t.items()))
    efforts = [k.effort for k in analysis.kernels]
    out.print("effort: " + ", ".join(f"{e} {efforts.count(e)}" for e in ("none", "minutes", "hours")))
    counts = count_codes(analysis.kernels)
    if counts:
        out.print("kernels stopped by code: " + ", ".join(f"{c} {n}" for c, n in counts.items()))


def yes(value: bool) -> str:
    return "yes" if value else "no"


def analysis_to_json(analysis: Analysis) -> dict[str, Any]:
    rows = [
        {**asdict(k), "effort": k.effort, "instances": list(k.instances), "runs": list(k.runs), "outcome": k.outcome}
        for k in analysis.kernels
    ]
    return {
        "schema": 1,
        "totals": totals(analysis),
        "codes": count_codes(analysis.kernels),
        "kernels": rows,
        "diagnostics": [{"code": d.code, "message": d.message, "file": d.span.file} for d in analysis.diagnostics],
    }
