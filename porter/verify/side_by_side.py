"""Original and port on a small launch with made-up arguments: do both run clean, and do they write the same?

This is no verification: a launch or two, no case, arguments that nobody chose. It finds ports that are plainly wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from porter import ir
from porter.case.reader import FLOAT_NAMES, LaunchShape
from porter.verify import emulator as ptx
from porter.verify.backends.emulator import EmulatorBackend, module_of
from porter.verify.backends.interface import Build, RunOptions, RunResult, Violation
from porter.verify.emulator.decode.lower import lower
from porter.verify.execute import FILLS
from porter.verify.launches.buffers import HostBuffer
from porter.verify.launches.made_up import (
    ATTEMPTS,
    SMEM_BYTES,
    Arguments,
    Attempt,
    Bounds,
    NotMadeUp,
    launch_of,
    make_arguments,
)
from porter.verify.launches.symbols import means, reached_variables
from porter.verify.numerics.comparison import compare_output
from porter.verify.numerics.tolerance import adds_products, approximations, derive, has_reduction
from porter.verify.run_outcome import DIFFERS, EQUAL, FAULTS, NOT_RUN, Outcome

BUDGET = 30_000_000  # thread-instructions of the original's launch, about
MORE = 4  # times as many are the port's to use
SECONDS = 40.0  # for the attempts of an instance
ENOUGH = 0.6  # of the original's instructions reached by a launch: then other attempts are not made
ROW = 64  # elements
SUM = 4096  # terms that a sum across threads is taken to have


@dataclass
class _Signature:
    """What the kernel takes; `variables`: the original's module variables by the parameters of the port."""

    params: Sequence[ir.FunctionParam]
    symbols: Sequence[ir.Symbol]
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Clean:
    """A launch that the original took."""

    attempt: Attempt
    before: Arguments
    after: Arguments
    shape: LaunchShape
    reached: float = 0.0


@dataclass
class _Search:
    """The launches of one instance's original."""

    found: list[_Clean] = field(default_factory=list)
    idle: bool = False  # it ran clean and wrote nothing
    fault: str = ""
    refused: str = ""


def side_by_side(
    instance: str,
    params: Sequence[ir.FunctionParam],
    original: Build,
    port: Build,
    launched: int = 0,
    symbols: Sequence[ir.Symbol] = (),
    attempts: Sequence[Attempt] = ATTEMPTS,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Look for arguments that the original takes, then run the port on them. Never raises for what the kernels do.

    `launched` is the number of threads of a block in the source's own launch, 0: unknown.
    """
    signature = _Signature(params, symbols)
    try:
        bounds = _bounds(original, launched)
        signature.variables = _variables(original, symbols)
        search = _search(signature, original, bounds, attempts, clock)
    except NotMadeUp as error:
        return Outcome(instance, NOT_RUN, detail=str(error))
    except ptx.PtxError as error:
        return Outcome(instance, NOT_RUN, detail=f"the original: {error}")
    if not search.found:
        if search.refused:
            return Outcome(instance, NOT_RUN, detail=f"the original: {search.refused}")
        if search.idle:
            return Outcome(instance, NOT_RUN, detail="it writes nothing on made-up arguments")
        return Outcome(instance, FAULTS, detail=search.fault)
    best = max(search.found, key=lambda c: c.reached)
    again = _search(signature, original, bounds, [replace(best.attempt, integers="signed")], clock)
    for clean in (best, *again.found):
        answer = Outcome(instance, EQUAL, str(clean.attempt), reached=round(clean.reached, 3))
        mine = clean.before.copy()
        result = _launch(signature, port, clean.shape, clean.before, mine, is_port=True)
        if result.error:
            return replace(answer, outcome=NOT_RUN, detail=f"the port: {result.error}")
        if result.violations:
            return replace(answer, outcome=DIFFERS, detail=f"the port: {_told(result.violations)}")
        difference = _difference(original, port, clean, mine)
        if difference:
            return replace(answer, outcome=DIFFERS, detail=difference)
    return answer


def _bounds(original: Build, launched: int) -> Bounds:
    module = module_of(original.ptx)
    directives = lower(module, original.entry).directives
    return Bounds(
        directives.get("reqntid", ()), directives.get("maxntid", ()), directives.get("reqnctapercluster", ()), launched
    )


def _variables(original: Build, symbols: Sequence[ir.Symbol]) -> dict[str, str]:
    """The original's module variable of each symbol, by the symbol's parameter."""
    reached = reached_variables(original.ptx, original.entry) if symbols else {}
    found = {s.name: [n for n in reached if means(s.declared, n)] for s in symbols}
    for name, fits in found.items():
        if len(fits) > 1:
            raise NotMadeUp(f"`{name}` may be one of {len(fits)} variables")
    return {name: fits[0] for name, fits in found.items() if fits}


def _search(
    signature: _Signature,
    original: Build,
    bounds: Bounds,
    attempts: Sequence[Attempt],
    clock: Callable[[], float],
) -> _Search:
    search = _Search()
    deadline = clock() + SECONDS
    cooperative = "grid_sync" in original.ptx or "%envreg" in original.ptx
    tried: set[tuple[Attempt, tuple[int, ...]]] = set()
    for attempt in attempts:
        if clock() > deadline:
            break
        grid, block, cluster = launch_of(attempt, bounds)
        if (replace(attempt, block=()), block) in tried:
            continue
        tried.add((replace(attempt, block=()), block))
        shape = LaunchShape(grid, block, SMEM_BYTES, cooperative, cluster)
        before = make_arguments(signature.params, attempt, signature.symbols)
        after = before.copy()
        result = _launch(signature, original, shape, before, after, is_port=False)
        if result.error:
            search.refused = search.refused or result.error
            if result.unsupported:
                break
            continue
        if result.violations:
            search.fault = search.fault or f"{attempt}: {_told(result.violations)}"
            continue
        if all(np.array_equal(a.raw, b.raw) for a, b in zip(before.buffers, after.buffers, strict=True)):
            search.idle = True
            continue
        clean = _Clean(attempt, before, after, shape, result.reached)
        search.found.append(clean)
        if clean.reached >= ENOUGH:
            break
    return search


@dataclass(frozen=True)
class _Ran(RunResult):
    reached: float = 0.0
    unsupported: bool = False


def _launch(
    signature: _Signature, build: Build, shape: LaunchShape, before: Arguments, memory: Arguments, is_port: bool
) -> _Ran:
    """One launch on `memory`, a copy of `before`, with every check of the emulator; reads of uninitialised shared or
    local memory whose values have no effect are left out, as `porter verify` does."""
    backend = EmulatorBackend(BUDGET * (MORE if is_port else 1))
    names = {} if is_port else signature.variables
    result = _run(backend, build, shape, memory, is_port, names, True, 0)
    idle = [v for v in result.violations if v.kind == "uninitialised-read" and v.space in ("shared", "local")]
    for fill in FILLS if idle else ():
        again = before.copy()
        other = _run(backend, build, shape, again, is_port, names, False, fill)
        same = all(np.array_equal(a.raw, b.raw) for a, b in zip(memory.buffers, again.buffers, strict=True))
        if other.error or not same:
            return result
    return replace(result, violations=tuple(v for v in result.violations if v not in idle))


def _run(
    backend: EmulatorBackend,
    build: Build,
    shape: LaunchShape,
    memory: Arguments,
    is_port: bool,
    names: Mapping[str, str],
    checks: bool,
    fill: int,
) -> _Ran:
    arguments = memory.of_port() if is_port else memory.of_original()
    variables = {names[n]: b for n, b in memory.variables.items() if n in names}
    try:
        told, result = backend.emulate(build, shape, arguments, RunOptions(0, checks, fill, variables))
    except ptx.PtxError as error:
        return _Ran(error=str(error), unsupported=isinstance(error, ptx.UnsupportedPtx))
    reached = result.counts.get("instructions_reached", 0) / max(1, result.counts.get("instructions", 1))
    return _Ran(told, result.seconds, int(result.counts.get("thread_instructions", 0)), reached=reached)


def _in_rows(buffer: HostBuffer) -> HostBuffer:
    """The buffer seen as rows of ROW elements: nobody knows the real ones, and bounds of sums and of products of which
    one is fused are relative to the largest value of a row."""
    if buffer.dtype not in FLOAT_NAMES or buffer.raw.size % ROW:
        return buffer
    return replace(buffer, shape=(buffer.raw.size // ROW, ROW), strides=(ROW, 1))


def _told(violations: Sequence[Violation]) -> str:
    first = violations[0]
    more = f", and {len(violations) - 1} more" if len(violations) > 1 else ""
    return f"{first.kind}: {first.message}{more}"


def _difference(original: Build, port: Build, clean: _Clean, mine: Arguments) -> str:
    """The first buffer that the port leaves otherwise than the original; "" when there is none."""
    pair = (approximations(original.ptx), approximations(port.ptx))
    reduces = has_reduction(original.ptx) or has_reduction(port.ptx)
    contracts = adds_products(original.ptx) or adds_products(port.ptx)
    for before, theirs, ours in zip(clean.before.buffers, clean.after.buffers, mine.buffers, strict=True):
        compare = "close" if before.dtype in FLOAT_NAMES else "exact"
        tolerance = derive(before.dtype, compare, SUM if reduces else 1, *pair, None, contracts)
        found = compare_output(_in_rows(before), _in_rows(theirs), _in_rows(ours), tolerance)
        if found.findings:
            return f"{before.name}: {found.findings[0].message}"
    return ""
