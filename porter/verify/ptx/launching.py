"""ptx.launch: arguments to parameter bytes, memory, one run, the result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from porter.verify.ptx import counting, interpret
from porter.verify.ptx.accelerate import Accelerator
from porter.verify.ptx.checks import Checks, Recorder, Violation
from porter.verify.ptx.declarations import initialisers
from porter.verify.ptx.errors import LaunchError, PtxSyntaxError
from porter.verify.ptx.ir import Module, Sym, Variable
from porter.verify.ptx.layout import GLOBAL_BASE, SHARED_WINDOW, first_free, place_variables
from porter.verify.ptx.lower import lower
from porter.verify.ptx.memory import AddressSpace, Buffer, Pointer, Region
from porter.verify.ptx.perturb import Perturbation
from porter.verify.ptx.program import Program
from porter.verify.ptx.scheduler import OutOfBudget
from porter.verify.ptx.tensors import tensors_as_buffers
from porter.verify.ptx.traffic import TrafficCounter
from porter.verify.ptx.types import PtxType
from porter.verify.ptx.wave import Geometry

DEFAULT_BUDGET = 20_000_000_000
Dim3 = tuple[int, int, int]


@dataclass(slots=True)
class Result:
    """What a launch did. `counts`: see counting.py. `deadlock`: some threads could never have gone on."""

    entry: str
    backend: str
    violations: list[Violation] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""  # why compiled code was not used, if it was tried
    deadlock: bool = False
    stdout: str = ""
    seconds: float = 0.0

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


def _dim(value: int | Sequence[int], what: str) -> Dim3:
    dims = (value,) if isinstance(value, int) else tuple(int(v) for v in value)
    dims = (*dims, 1, 1, 1)[:3] if len(dims) <= 3 else dims
    if len(dims) != 3 or any(d < 1 for d in dims):
        raise LaunchError(f"{what} must be one to three positive numbers, not {value!r}")
    return dims  # type: ignore[return-value]


def encode_argument(value: object, parameter: Variable, addresses: dict[int, int]) -> bytes:
    """The bytes of one argument for its declared parameter. Raises LaunchError."""
    t, size = parameter.type, parameter.size
    if isinstance(value, Buffer):
        value = addresses[id(value)]
    elif isinstance(value, Pointer):
        value = addresses[id(value.buffer)] + value.offset
    elif value is None:
        value = 0
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
    elif isinstance(value, (np.ndarray, np.void)):
        data = value.tobytes()
    elif parameter.is_array:
        if isinstance(value, (bool, int)) and size in (1, 2, 4, 8):
            return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        if isinstance(value, np.generic) and value.nbytes == size:
            return value.tobytes()
        raise LaunchError(f"parameter {parameter.name} is a {size}-byte array: pass bytes, not {type(value).__name__}")
    else:
        return _encode_scalar(value, t, parameter.name)
    if len(data) != size:
        raise LaunchError(f"parameter {parameter.name} has {size} bytes, the argument {len(data)}")
    return data


def _encode_scalar(value: object, t: PtxType, name: str) -> bytes:
    floating = isinstance(value, (float, np.floating))
    if t.kind in "fh" or (floating and t.kind == "b"):
        number = np.float64(value)  # type: ignore[arg-type]
        if isinstance(value, np.floating) and t.kind == "b" and value.nbytes != t.bytes:
            raise LaunchError(f"parameter {name} is {t.name}, the argument {value.dtype}")
        if t.name == "bf16":
            bits = int(np.float32(number).view(np.uint32))
            return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF).to_bytes(2, "little")
        return number.astype({2: np.float16, 4: np.float32, 8: np.float64}[t.bytes]).tobytes()
    if floating or not isinstance(value, (bool, int, np.integer, np.bool_)):
        raise LaunchError(f"parameter {name} is {t.name}, the argument {type(value).__name__}")
    number_int = int(value)
    if not -(1 << (t.bits - 1)) <= number_int < 1 << t.bits:
        raise LaunchError(f"argument {number_int} does not fit parameter {name} ({t.name})")
    return (number_int & ((1 << t.bits) - 1)).to_bytes(t.bytes, "little")


def _module_memory(module: Module, used: frozenset[str], space: AddressSpace) -> None:
    """The module variables that a program can reach, freshly initialised."""
    placed = place_variables(module)
    todo, done = list(used), set(used)
    while todo:
        name = todo.pop()
        image, more = _image(module, name)
        todo += [m for m in more if m not in done]
        done.update(more)
        variable = placed[name].variable
        writable = variable.space == "global"
        data = image.copy() if writable else image
        space.insert(Region("global", name, placed[name].address, data, None, writable), 0)


def _image(module: Module, name: str) -> tuple[np.ndarray, frozenset[str]]:
    """The initial bytes of a module variable, and the variables whose addresses they hold."""
    key = ("image", name)
    if key in module.cache:
        return module.cache[key]  # type: ignore[return-value]
    placed = place_variables(module)
    variable = placed[name].variable
    image = np.zeros(variable.size, np.uint8)
    step, at, more = variable.type.bytes, 0, set()
    values = initialisers(variable)
    if len(values) * step > variable.size:
        raise PtxSyntaxError(f"{name} has more initial values than elements", variable.line)
    if values and all(isinstance(v, int) for v, _ in values):
        raw = np.array([v & ((1 << 8 * step) - 1) for v, _ in values], np.uint64)  # type: ignore[operator]
        image[: len(values) * step] = raw.view(np.uint8).reshape(-1, 8)[:, :step].reshape(-1)
        values = []
    for value, mask in values:
        if isinstance(value, Sym):
            if value.name in placed:
                more.add(value.name)
            number = _symbol_address(module, value)
            if mask:
                number = (number & mask) >> ((mask & -mask).bit_length() - 1)
            part = number.to_bytes(8, "little")[:step]
        elif isinstance(value, float):
            part = np.float64(value).astype({4: np.float32, 8: np.float64}.get(step, np.float32)).tobytes()
        else:
            part = (value & ((1 << 8 * step) - 1)).to_bytes(step, "little")
        image[at : at + step] = np.frombuffer(part, np.uint8)
        at += step
    module.cache[key] = image, frozenset(more)
    return image, frozenset(more)


def _symbol_address(module: Module, symbol: Sym) -> int:
    placed = place_variables(module)
    if symbol.name in placed:
        return placed[symbol.name].address + symbol.offset
    return symbol.offset


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
) -> Result:
    """Runs one kernel of a module on the CPU.

    args: per parameter a Buffer, Buffer.at(bytes), torch tensor in CPU memory (used in place, writable, initialised),
    number, or bytes of a struct. smem_bytes: dynamic shared memory.
    resident: blocks that run at once (0: all of a cooperative launch, else what 132 SMs hold or fewer). seed: 0 runs in
    the natural order, any other number shuffles blocks and the order in which atomics meet. budget: an upper bound on
    work, about thread-instructions; exceeding it is a `budget` violation. Module variables start afresh at each launch.
    Raises UnsupportedPtx for instructions that are not modelled, LaunchError for a wrong launch.
    """
    started = time.perf_counter()
    checks = checks or Checks()
    name = find_entry(module, entry)
    program = lower(module, name)
    geometry = _geometry(program, grid, block, cluster, smem_bytes)
    space = AddressSpace(max(first_free(module), GLOBAL_BASE))
    _module_memory(module, program.globals, space)
    parameters = module.declarations[name].params
    if len(args) != len(parameters):
        raise LaunchError(f"{name} has {len(parameters)} parameters, {len(args)} arguments were given")
    args = tensors_as_buffers(args)
    addresses = _place_buffers(args, parameters, space, checks)
    params = np.zeros(max(program.param_bytes, 1), np.uint8)[: program.param_bytes]
    for value, parameter in zip(args, parameters, strict=True):
        at = program.param_offsets[parameter.name]
        params[at : at + parameter.size] = np.frombuffer(encode_argument(value, parameter, addresses), np.uint8)
    envregs: dict[int, int] = {}
    if cooperative:
        workspace = space.place(Buffer(np.zeros(1024, np.uint8), "grid workspace"), False)
        envregs = {1: workspace.base >> 32, 2: workspace.base & 0xFFFFFFFF}
    recorder = Recorder(module)
    traffic = TrafficCounter() if checks.counts else None
    output: list[str] = []
    resident = interpret.resident_blocks(program, geometry, cooperative, resident)
    if backend not in ("auto", "numpy", "llvm"):
        raise LaunchError(f"unknown backend {backend!r}")
    plain = not (seed or perturb or checks.shared_races or checks.global_races or checks.counts or cooperative)
    if backend == "llvm" and not plain:
        raise LaunchError("the llvm backend has no seeds, perturbation, race checks or cooperative launches")
    accelerator = None
    if backend == "llvm" or (backend == "auto" and plain):
        accelerator = Accelerator(module, program, geometry, params, space, checks, backend == "llvm")
    result = Result(name, "numpy")
    try:
        spent, crossed, result.deadlock = interpret.run(
            program, geometry, params, space, checks, recorder, envregs, resident, seed,
            budget or DEFAULT_BUDGET, perturb, output, accelerator, traffic,
        )  # fmt: skip
        if accelerator is not None:
            result.backend = "llvm" if accelerator.used else "numpy"
            result.refusal = accelerator.refusal
        result.counts = counting.summary(program, spent.executions, crossed)
        if traffic is not None:
            result.counts["traffic"] = traffic.summary()
    except OutOfBudget:
        recorder.add(
            "budget", None, np.zeros(1, np.int64), lambda lane: ((0, 0, 0), (0, 0, 0)),
            "the launch was ended: it did more work than its budget allows",
        )  # fmt: skip
    space.finish()
    result.violations = recorder.violations
    result.stdout = "".join(output)
    result.seconds = time.perf_counter() - started
    return result


def _geometry(program: Program, grid: object, block: object, cluster: object, smem_bytes: int) -> Geometry:
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
    return Geometry(g, b, c, smem_bytes, program)


def _place_buffers(
    args: Sequence[object], parameters: tuple[Variable, ...], space: AddressSpace, checks: Checks
) -> dict[int, int]:
    addresses: dict[int, int] = {}
    for value, parameter in zip(args, parameters, strict=True):
        buffer = value.buffer if isinstance(value, Pointer) else value
        if isinstance(buffer, Buffer) and id(buffer) not in addresses:
            if not buffer.name:
                buffer.name = parameter.name
            addresses[id(buffer)] = space.place(buffer, checks.uninitialised).base
    if space.next > SHARED_WINDOW:
        raise LaunchError("the buffers do not fit into the address space")
    return addresses
