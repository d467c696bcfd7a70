"""All launches that the host functions of a file make, each on the ways that lead to it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from porter.frontend.host.demand import demand, settle_ranks
from porter.frontend.host.nodes import Node
from porter.frontend.host.reach import launches
from porter.frontend.host.run import (
    CannotMerge,
    Frame,
    Hints,
    HostLaunch,
    OutOfBudget,
    PathEnds,
    Place,
    Program,
    Run,
)
from porter.frontend.host.statements import execute
from porter.frontend.instances.guess import host_template_seeds
from porter.frontend.instances.reached import explicit_in, reached_functions, with_seeds
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.declarations import qualified_name, template_arguments
from porter.frontend.parse.source import ParsedUnit
from porter.model import KernelInfo

_WAYS = 48  # of one entry function
_SECONDS = 12.0  # of processor time, for a file
_SECONDS_OF_ONE = 3.0  # for an entry function
_RANK_ROUNDS = 3


@dataclass
class Entry:
    """A host function that was run from its start, and what it launched."""

    function: Cursor
    name: str
    launches: list[HostLaunch] = field(default_factory=list)
    called: bool = False  # another function of the file calls it
    complete: bool = True


def entries(unit: ParsedUnit) -> list[Entry]:
    """The entry functions of a file with their launches, found once per unit."""
    if "host entries" not in unit.memo:
        unit.memo["host entries"] = explore(with_seeds(unit, explicit_in(unit)))
    found: list[Entry] = unit.memo["host entries"]
    return found


def entries_through_templates(unit: ParsedUnit, kernel: KernelInfo) -> list[Entry]:
    """The host templates that launch a kernel and that nobody instantiates, run at guessed arguments."""
    seeds = host_template_seeds(unit, kernel)
    if not seeds:
        return []
    key = f"host entries {seeds}"
    if key not in unit.memo:
        whole = with_seeds(unit, seeds)
        unit.memo[key] = [] if whole is unit else explore(whole)
    found: list[Entry] = unit.memo[key]
    return found


def explore(unit: ParsedUnit, seconds: float = _SECONDS) -> list[Entry]:
    """Run every host function of the file that launches, those that nobody calls first."""
    program = Program(unit)
    functions = [f for f in reached_functions(unit) if f.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD)]
    launching = [f for f in functions if not _is_lambda(f) and launches(program, f)]
    launching = [f for f in launching if "__porter" not in qualified_name(f)]
    called: set[str] = set()
    for f in launching:
        for x in program.nodes.of(f).walk():
            target = x.target if x.kind in (CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR) else None
            functions_only = (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD)
            if target is None or target.kind not in functions_only or f.spelling == "main":
                continue
            if target.get_usr() != f.get_usr():
                called.add(target.get_usr())
    deadline = time.process_time() + seconds
    found = []
    for f in sorted(launching, key=lambda f: (f.spelling == "main", f.get_usr() in called)):
        if time.process_time() > deadline:
            break
        entry = run_entry(program, f, min(deadline, time.process_time() + _SECONDS_OF_ONE))
        entry.called = f.get_usr() in called
        found.append(entry)
    return found


def _is_lambda(function: Cursor) -> bool:
    return function.spelling == "operator()" and "(lambda" in str(function.semantic_parent.type.spelling)


def run_entry(program: Program, function: Cursor, deadline: float) -> Entry:
    """All ways through one function, within bounds."""
    entry = Entry(function, qualified_name(function))
    program.deadline = deadline
    hints = Hints()
    for name, count in _commented_ranks(program, function).items():
        hints.ranks[name] = count
        hints.dimensioned.add(name)
    runs, entry.complete = _ways(program, function, hints)
    for _ in range(_RANK_ROUNDS - 1):
        if not settle_ranks(hints):
            break
        again, complete = _ways(program, function, hints)
        if any(r.launches for r in again) or not any(r.launches for r in runs):
            runs, entry.complete = again, complete
    for run in runs:
        entry.launches += run.launches
    return entry


_COMMENT_BEHIND = re.compile(r"\s*,?\s*\)?\s*\{?\s*((?://[^\n]*\n\s*)+|/\*.*?\*/)", re.S)


def _commented_ranks(program: Program, function: Cursor) -> dict[str, int]:
    """Dimensions of tensor parameters by the comment behind each, as in `Tensor x,  // [tokens, hidden]`: of several
    shapes the first."""
    source = program.unit.source
    lines = source.text.split("\n")
    found = {}
    for p in function.get_children():
        if p.kind != CursorKind.PARM_DECL or not re.search(r"\bTensor\b", p.type.spelling):
            continue
        end = cc.extent(p)[1]
        if end.file != str(source.path):
            continue
        comment = _COMMENT_BEHIND.match("\n".join(lines[end.line - 1 : end.line + 7])[end.col - 1 :])
        stated = re.search(r"\[([^\[\]]*)\]", comment.group(1)) if comment else None
        dims = stated.group(1).replace("...", "*").split(",") if stated else []
        if dims and all(re.match(r"\s*\w", d) for d in dims):
            found[p.spelling] = len(dims)
    return found


def _ways(program: Program, function: Cursor, hints: Hints) -> tuple[list[Run], bool]:
    """Ways in an order that takes new arms first."""
    queue: list[tuple[int, ...]] = [()]
    taken: set[tuple[str, int]] = set()
    runs: list[Run] = []
    complete = True
    while queue and len(runs) < _WAYS:
        at = _newest(queue, taken, runs)
        prefix = queue.pop(at)
        run = Run(program, hints, prefix)
        stopped = _one(run, function)
        runs.append(run)
        if stopped:
            complete = False
            if time.process_time() > program.deadline:
                break
        taken.update((site, arm) for site, arm, _ in run.decisions)
        arms = tuple(arm for _, arm, _ in run.decisions)
        for i in range(len(prefix), len(arms)):
            for other in range(run.decisions[i][2]):
                if other != arms[i]:
                    queue.append((*arms[:i], other))
        sites = {(*arms[:i],): run.decisions[i][0] for i in range(len(prefix), len(arms))}
        _SITES.update({(id(program), p): s for p, s in sites.items()})
    for key in [k for k in _SITES if k[0] == id(program)]:
        del _SITES[key]
    return runs, complete and not queue


_SITES: dict[tuple[int, tuple[int, ...]], str] = {}


def _newest(queue: list[tuple[int, ...]], taken: set[tuple[str, int]], runs: list[Run]) -> int:
    """The first waiting way that takes an arm which none has taken, else the first."""
    if not runs:
        return 0
    program = id(runs[0].program)
    for i, prefix in enumerate(queue):
        if prefix and (_SITES.get((program, prefix[:-1]), ""), prefix[-1]) not in taken:
            return i
    return 0


def _one(run: Run, function: Cursor) -> bool:
    """Run a function with parameters that are free; True when it was stopped."""
    node = run.program.nodes.of(function)
    frame = Frame(node, {}, None, None, None, 0, True, template_arguments(function))
    try:
        for p in (c for c in node.children if c.kind == CursorKind.PARM_DECL):
            frame.places[p.key] = Place(_parameter(run, p), p.spelling)
        if function.kind == CursorKind.CXX_METHOD and not function.is_static_method():
            this = demand(run, function.semantic_parent.type, "self", node.span)
            frame.this = this if hasattr(this, "members") else None
            if frame.this is not None:
                frame.this.name = function.semantic_parent.spelling.lower()
        body = next((c for c in node.children if c.kind == CursorKind.COMPOUND_STMT), None)
        if body is not None:
            execute(run, frame, body)
    except (PathEnds, CannotMerge):
        return False
    except (OutOfBudget, RecursionError):
        return True
    return False


def _parameter(run: Run, p: Node) -> object:
    return demand(run, p.cursor.type, p.spelling or "parameter", p.span)
