"""ptx.launch and ptx.launch_ranks: arguments, memory, one run, the result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from porter.verify.emulator.checks import counting
from porter.verify.emulator.checks.ordering import level_of
from porter.verify.emulator.checks.origins import named_after_arguments
from porter.verify.emulator.checks.overlap import EarlyAccess
from porter.verify.emulator.checks.stopping import Stopper
from porter.verify.emulator.checks.sums import ROUNDING, FloatSums, Sums
from porter.verify.emulator.checks.taps import Taps
from porter.verify.emulator.checks.traffic import TrafficCounter
from porter.verify.emulator.checks.violations import Checks, Recorder, Violation
from porter.verify.emulator.decode.ir import Module
from porter.verify.emulator.decode.lower import lower
from porter.verify.emulator.decode.parse import function
from porter.verify.emulator.decode.program import Atomic, Load, Program, Store
from porter.verify.emulator.errors import LaunchError
from porter.verify.emulator.machine import interpret
from porter.verify.emulator.machine.accelerate import Accelerator
from porter.verify.emulator.machine.budget import OutOfBudget
from porter.verify.emulator.machine.directed import DIRECTED
from porter.verify.emulator.machine.drawn import Machine, draw
from porter.verify.emulator.machine.perturb import Perturbation
from porter.verify.emulator.machine.wave import Geometry
from porter.verify.emulator.memory.arguments import encode_argument, place_buffers
from porter.verify.emulator.memory.buffers import AddressSpace, Buffer
from porter.verify.emulator.memory.layout import GLOBAL_BASE, align_up, first_free
from porter.verify.emulator.memory.module_memory import place_module
from porter.verify.emulator.memory.tensors import tensors_as_buffers

DEFAULT_BUDGET = 20_000_000_000
# CPU time of a launch without and with a budget given: a few threads do little work in much time
DEFAULT_SECONDS, MOST_SECONDS = 15.0, 120.0
OVER_BUDGET = "the launch was ended: it did more work than its budget allows"
Dim3 = tuple[int, int, int]


@dataclass(slots=True)
class Result:
    """What a launch did. `counts`: see checks/counting.py. `deadlock`: some threads could never have gone on."""

    entry: str
    backend: str
    violations: list[Violation] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""  # why compiled code was not used, if it was tried
    deadlock: bool = False
    stdout: str = ""
    seconds: float = 0.0
    sums: dict[str, Sums] = field(default_factory=dict)  # by buffer, where Checks.sums asks for them
    work: int = 0  # of `budget`, that the launch took
    strong_writes: int = 0  # to global memory, where stop_after counts them

    @property
    def ok(self) -> bool:
        return not self.violations


def find_entry(module: Module, name: str) -> str:
    """An entry by its exact name, or by a part of it that only one entry has. Raises LaunchError."""
    if name in module.entries:
        return name
    found = [e for e in module.entries if name in e]
    if len(found) == 1:
        return found[0]
    known = ", ".join(module.entries[:8]) or "none"
    raise LaunchError(f"{'no' if not found else 'more than one'} entry matches {name!r} (entries: {known})")


def telling_orders(module: Module, entry: str) -> tuple[str, ...]:
    """The directed orders (machine/directed.py) that may change what a kernel does. Raises PtxError.

    None of them without atomics and strong accesses: where nothing races, order shows in nothing else.
    """
    found: set[str] = set()
    for segment in lower(module, find_entry(module, entry)).segments:
        for step in segment.steps:
            if isinstance(step, (Load, Store, Atomic)) and level_of(step):
                found.add("warps")
                if segment.spins and step.place.space != "shared" and not isinstance(step, Store):
                    found |= {"ahead", "behind", "turns"}
    return tuple(d for d in DIRECTED if d in found)


def adds_floats(module: Module, entry: str) -> bool:
    """Does a kernel add floats by atomics outside of shared memory? Raises PtxError."""
    return any(
        isinstance(step, Atomic) and step.op == "add" and step.type.name in ROUNDING and step.place.space != "shared"
        for segment in lower(module, find_entry(module, entry)).segments
        for step in segment.steps
    )


def _dim(value: int | Sequence[int], what: str) -> Dim3:
    dims = (value,) if isinstance(value, int) else tuple(int(v) for v in value)
    dims = (*dims, 1, 1, 1)[:3] if len(dims) <= 3 else dims
    if len(dims) != 3 or any(d < 1 for d in dims):
        raise LaunchError(f"{what} must be one to three positive numbers, not {value!r}")
    return dims  # type: ignore[return-value]


def launch(
    module: Module,
    entry: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[object],
    smem_bytes: int = 0,
    cooperative: bool = False,
    cluster: int | Sequence[int] = (1, 1, 1),
    checks: Checks | None = None,
    seed: int = 0,
    backend: str = "auto",
    budget: int | None = None,
    resident: int = 0,
    perturb: Perturbation | None = None,
    taps: Taps | None = None,
    variables: Mapping[str, Buffer] | None = None,
    overlapped: bool = False,
    directed: str = "",
    blocks: Sequence[int] = (),
    stop_after: int = -1,
    seconds: float = 0.0,
) -> Result:
    """Runs one kernel of a module on the CPU.

    args: per parameter a Buffer, Buffer.at(bytes), torch tensor in CPU memory (used in place, writable, initialised),
    number, bytes of a struct, or a tuple of buffers (a struct of pointers). smem_bytes: dynamic shared memory.
    resident: blocks that run at once (0: all of a cooperative launch, else what 132 SMs hold or fewer). seed: 0 runs
    in the natural order, any other number draws the order of blocks, of warps and of atomics that meet. budget: an
    upper bound on work, about thread-instructions; exceeding it is a `budget` violation, as is more CPU time than
    `seconds` (0: 15, or 120 with a budget). taps: records what threads do; the numpy interpreter runs then. variables:
    the memory of module variables by their names, of their sizes; others start afresh at each launch. overlapped: by
    programmatic dependent launch, so that accesses to global memory before griddepcontrol.wait are `early-access`
    violations. directed: the order of blocks is
    not drawn but one of machine/directed.py ("ahead", "behind", "turns"). blocks: linear numbers of those that run,
    of a grid without clusters; (): all. stop_after: ends the launch before it would make more strong writes to global
    memory (Result.strong_writes); below zero it does not count them.
    Raises UnsupportedPtx for instructions that are not modelled, LaunchError for a wrong launch.
    """
    return _launch(
        module, entry, grid, block, [args], smem_bytes, cooperative, cluster, checks, seed, backend, budget, resident,
        perturb, taps, variables, overlapped, directed, blocks, stop_after, seconds,
    )  # fmt: skip


def launch_ranks(
    module: Module,
    entry: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Sequence[object]],
    smem_bytes: int = 0,
    cooperative: bool = False,
    cluster: int | Sequence[int] = (1, 1, 1),
    checks: Checks | None = None,
    seed: int = 0,
    budget: int | None = None,
    resident: int = 0,
) -> Result:
    """Runs one kernel on several ranks at once, each with a grid and module variables of its own.

    args: the arguments of each rank. All ranks share one address space: a rank reaches its peers through their buffers,
    a tuple of buffers (a struct of pointers), a PointerTable or a Multicast. `resident` is per rank; `seed` also draws
    the order of ranks. The rest is as for `launch`; the numpy interpreter runs it.
    """
    if not args:
        raise LaunchError("a launch needs at least one rank")
    return _launch(
        module,
        entry,
        grid,
        block,
        args,
        smem_bytes,
        cooperative,
        cluster,
        checks,
        seed,
        "numpy",
        budget,
        resident,
        None,
    )


def _launch(
    module: Module,
    entry: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    rank_args: Sequence[Sequence[object]],
    smem_bytes: int,
    cooperative: bool,
    cluster: int | Sequence[int],
    checks: Checks | None,
    seed: int,
    backend: str,
    budget: int | None,
    resident: int,
    perturb: Perturbation | None,
    taps: Taps | None = None,
    variables: Mapping[str, Buffer] | None = None,
    overlapped: bool = False,
    directed: str = "",
    blocks: Sequence[int] = (),
    stop_after: int = -1,
    seconds: float = 0.0,
) -> Result:
    started = time.perf_counter()
    checks = checks or Checks()
    name = find_entry(module, entry)
    program = lower(module, name)
    rank_args = [tensors_as_buffers(args) for args in rank_args]
    ranks = len(rank_args)
    sizes = [int(getattr(getattr(a, "data", None), "nbytes", 0)) for args in rank_args for a in args]
    machine = draw(seed, [*_dim(grid, "grid"), *_dim(block, "block"), *sizes])
    geometry = _geometry(program, grid, block, cluster, smem_bytes, ranks, machine)
    span = first_free(module) - GLOBAL_BASE
    space = AddressSpace(GLOBAL_BASE + ranks * span)
    space.module_span = span
    for rank in range(ranks):
        place_module(module, program.globals, space, rank * span, variables)
    if ranks == 1:
        space.next = machine.buffers
    parameters = module.declarations[name].params
    for args in rank_args:
        if len(args) != len(parameters):
            raise LaunchError(f"{name} has {len(parameters)} parameters, {len(args)} arguments were given")
    addresses = place_buffers(rank_args, parameters, space, checks)
    stride = program.param_bytes if ranks == 1 else align_up(program.param_bytes, 16)
    params = np.zeros(ranks * stride, np.uint8)
    for rank, args in enumerate(rank_args):
        for value, parameter in zip(args, parameters, strict=True):
            at = rank * stride + program.param_offsets[parameter.name]
            params[at : at + parameter.size] = np.frombuffer(encode_argument(value, parameter, addresses), np.uint8)
    envregs: dict[int, list[int]] = {}
    if cooperative:
        places = [space.place(Buffer(np.zeros(1024, np.uint8), "grid workspace"), False).base for _ in range(ranks)]
        envregs = {1: [p >> 32 for p in places], 2: [p & 0xFFFFFFFF for p in places]}
    recorder = Recorder(module)
    traffic = TrafficCounter() if checks.counts else None
    early = EarlyAccess(recorder, (GLOBAL_BASE, GLOBAL_BASE + ranks * span)) if overlapped else None
    output: list[str] = []
    resident = interpret.resident_blocks(program, geometry, cooperative, 1 if directed == "alone" else resident)
    if backend not in ("auto", "numpy", "llvm"):
        raise LaunchError(f"unknown backend {backend!r}")
    if checks.sums:
        space.sums = FloatSums()
    stopper = Stopper(stop_after) if stop_after >= 0 else None
    watched = taps is not None or checks.counts or checks.sums
    special = seed or perturb or watched or cooperative or overlapped or directed or len(blocks) or stopper
    plain = ranks == 1 and not special
    plain = plain and not (checks.fill and not checks.uninitialised)  # what is read unseen must be the fill
    if backend == "llvm" and not plain:
        raise LaunchError("the llvm backend has no seeds, perturbation, taps, counts, fill or cooperative launches")
    accelerator = None
    if backend == "llvm" or (backend == "auto" and plain):
        accelerator = Accelerator(module, program, geometry, params, space, checks, backend == "llvm")
    result = Result(name, "numpy")
    try:
        spent, crossed, result.deadlock = interpret.run(
            program, geometry, params, space, checks, recorder, envregs, resident, seed,
            budget or DEFAULT_BUDGET, seconds or (MOST_SECONDS if budget else DEFAULT_SECONDS),
            perturb, output, accelerator, traffic, taps, early, directed, blocks, stopper,
        )  # fmt: skip
        if accelerator is not None:
            result.backend = "llvm" if accelerator.used else "numpy"
            result.refusal = accelerator.refusal
        result.work = (budget or DEFAULT_BUDGET) - spent.left
        result.counts = counting.summary(program, spent.executions, crossed)
        if traffic is not None:
            result.counts["traffic"] = traffic.summary()
    except OutOfBudget:
        recorder.add(
            "budget", None, np.zeros(1, np.int64), lambda lane: ((0, 0, 0), (0, 0, 0), None),
            OVER_BUDGET,
        )  # fmt: skip
    space.finish()
    result.strong_writes = stopper.seen if stopper is not None else 0
    result.violations = recorder.violations
    if ranks == 1 and result.violations:
        placed = {p.name: _placed(a, addresses) for p, a in zip(parameters, rank_args[0], strict=True)}
        known = {n: b for n, b in placed.items() if b is not None}
        result.violations = [named_after_arguments(v, function(module, name), known) for v in result.violations]
    result.sums = space.sums.found if space.sums is not None else {}
    result.stdout = "".join(output)
    result.seconds = time.perf_counter() - started
    return result


def _placed(value: object, addresses: dict[int, int]) -> tuple[str, int, int] | None:
    """Name, address and bytes of a buffer that was given as an argument."""
    buffer = getattr(value, "buffer", value)
    if not isinstance(buffer, Buffer) or id(buffer) not in addresses:
        return None
    return buffer.name, addresses[id(buffer)], int(buffer.array.nbytes)


def _geometry(
    program: Program, grid: object, block: object, cluster: object, smem_bytes: int, ranks: int, machine: Machine
) -> Geometry:
    g, b, c = _dim(grid, "grid"), _dim(block, "block"), _dim(cluster, "cluster")  # type: ignore[arg-type]
    threads = b[0] * b[1] * b[2]
    if threads > 1024:
        raise LaunchError(f"a block has at most 1024 threads, not {threads}")
    if any(x % y for x, y in zip(g, c, strict=True)):
        raise LaunchError(f"grid {g} is not a multiple of cluster {c}")
    wanted = program.directives.get("reqntid")
    if wanted and (*wanted, 1, 1)[:3] != b:
        raise LaunchError(f"{program.entry} requires blocks of {(*wanted, 1, 1)[:3]} threads, not {b}")
    most = program.directives.get("maxntid")
    if most and threads > int(np.prod(most)):
        raise LaunchError(f"{program.entry} allows at most {int(np.prod(most))} threads a block, not {threads}")
    if smem_bytes < 0 or program.dynamic_offset + smem_bytes > 1 << 20:
        raise LaunchError(f"shared memory of {program.dynamic_offset + smem_bytes} bytes is too much")
    return Geometry(g, b, c, smem_bytes, program, ranks, machine)
