"""Is what a torch-facing function did in a call what the case says? A difference is a fault at a line of the port."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from porter import codes
from porter.case.expressions import Value
from porter.case.reader import Case
from porter.corpus.runtime.dtypes import DTYPES
from porter.model import PorterError
from porter.verify.checks.entry import views
from porter.verify.checks.entry.expected import EntryCall, ExpectedLaunch
from porter.verify.checks.entry.views import View
from porter.verify.numerics.formats import encode
from porter.wording import plural

_WHOLE = frozenset(name for name, d in DTYPES.items() if not d.is_float and name != "bool")


@dataclass(frozen=True)
class Fault:
    """`kind` is the same for all calls that show one fault."""

    code: str
    kind: tuple[object, ...]
    message: str
    line: int


def faults(call: EntryCall, answer: Mapping[str, Any], case: Case) -> Iterator[Fault]:
    """What is wrong with the answer to a call. Raises KeyError, TypeError or ValueError for what is no answer."""
    uses = [u for u in answer["uses"] if not _allowed(u, call, case)]
    for use in uses:
        of = f" of {use['tensor']}" if use["tensor"] else ""
        when = " after the launch" if use.get("launched") else ""
        what = f"{use['what']} {use['tensor']}{when}" if use["what"] == "fills" else f"uses {use['what']}{of}"
        yield Fault(
            codes.ENTRY_TENSOR_USE, (use["what"], use["tensor"]), f"{call.function.name} {what}", int(use["line"])
        )
    if uses:
        return
    launches, error = answer["launches"], answer["error"]
    name, line = call.function.name, call.function.line
    if call.wanted is None:
        what = ", ".join(f"{n} with {o}" for n, o in call.situation.operands.items()) or str(_sizes(call))
        if launches:
            message = f"{name} launches the kernel for {what}, which no instance takes; it has to raise"
            yield Fault(codes.ENTRY_ACCEPTS, _wrong_kind(call), message, int(launches[0]["line"]))
        elif not error:
            yield Fault(
                codes.ENTRY_ACCEPTS,
                ("silent", *_wrong_kind(call)),
                f"{name} neither launches nor raises for {what}",
                line,
            )
        return
    if error:
        if call.situation.listed:
            message = f"{name} raises at {_at(call)}: {str(error['error']).splitlines()[0]}"
            yield Fault(codes.ENTRY_ACCEPTS, ("raises", int(error["line"])), message, int(error["line"]) or line)
        return
    if len(launches) > 1:
        message = f"{name} launches the kernel {len(launches)} times at {_at(call)}"
        yield Fault(codes.ENTRY_LAUNCH, ("times",), message, int(launches[1]["line"]))
    elif not launches:
        if 0 not in _shape(call, answer, case)[0] and _written(case, call.wanted):
            yield Fault(codes.ENTRY_LAUNCH, ("none",), f"{name} launches nothing at {_at(call)}", line)
    else:
        yield from _launch(call, launches[0], answer, case)
        yield from _fresh(call, launches[0], answer, case)
        yield from _mutated(call, answer["mutates"], case)


def _allowed(use: Mapping[str, Any], call: EntryCall, case: Case) -> bool:
    """An output that the case has filled before the launch may be filled so by the function."""
    if use["what"] != "fills" or use["launched"] or call.wanted is None or use["tensor"] not in call.given:
        return False
    buffer = case.buffer(use["tensor"])
    full = int(use["elements"]) == math.prod(call.given[buffer.name].shape)
    return full and buffer.init is not None and float(buffer.init) == float(use["fill"])


def _wrong_kind(call: EntryCall) -> tuple[object, ...]:
    """Wrong operands are one fault an operand and kind; of several operands of one kind the first is told."""
    for operand in call.situation.operands.values():
        return ("dtype" if operand.dtype else "shape" if operand.shape else "strides" if operand.strides else "at",)
    return ("sizes",)


def _sizes(call: EntryCall) -> str:
    return " ".join(f"{k}={v}" for k, v in {**call.situation.sizes}.items())


def _at(call: EntryCall) -> str:
    assert call.wanted is not None
    moved = [f"{n} at {o}" for n, o in call.situation.operands.items()]
    return " with ".join([str(call.wanted.point), *moved])


def _written(case: Case, wanted: ExpectedLaunch) -> int:
    return sum(math.prod(wanted.point.shapes[b.name]) for b in case.buffers if b.is_compared)


def _shape(call: EntryCall, answer: Mapping[str, Any], case: Case) -> tuple[list[int], list[int], int]:
    """The launch that is verified: what launch_config gives for the case's names, else the case's."""
    config = answer["config"]
    if "error" not in config:
        return [int(v) for v in config["grid"]], [int(v) for v in config["block"]], int(config["smem"])
    assert call.wanted is not None
    try:
        shape = case.launch_at(call.wanted.point, call.wanted.values, call.sm_count)
    except PorterError:
        return [0], [0], 0  # a launch that the case does not have either
    return list(shape.grid), list(shape.block), shape.smem


def _launch(call: EntryCall, launch: Mapping[str, Any], answer: Mapping[str, Any], case: Case) -> Iterator[Fault]:
    assert call.wanted is not None
    name, line = call.function.name, int(launch["line"])
    given = {k: _plain(v) for k, v in launch["constexprs"].items()}
    wanted = dict(call.wanted.values)
    if given != wanted or any(type(given[k]) is not type(v) for k, v in wanted.items()):
        message = f"{name} launches the instance {_told(given)} at {_at(call)}; the case's is {_told(wanted)}"
        yield Fault(codes.ENTRY_LAUNCH, ("instance",), message, line)
        return
    arguments = call.wanted.arguments
    if len(arguments) != len(launch["args"]):
        counted = plural(len(launch["args"]), "argument")
        message = f"{name} launches with {counted}, the kernel in the source has {len(arguments)}"
        yield Fault(codes.ENTRY_LAUNCH, ("arguments",), message, line)
        return
    for (parameter, value), argument in zip(arguments, launch["args"], strict=True):
        wrong = _argument(call, parameter, value, argument, case)
        if wrong:
            message = f"{name} gives the kernel's {parameter} {wrong} at {_at(call)}"
            yield Fault(codes.ENTRY_LAUNCH, ("argument", parameter), message, line)
    grid, block, smem = _shape(call, answer, case)
    for what, have, want in (("grid", launch["grid"], grid), ("block", launch["block"], block)):
        if len(have) != 3 or list(have) != [*want, 1, 1][:3]:
            message = f"{name} launches the {what} {have} at {_at(call)}; verified is {[*want, 1, 1][:3]}"
            yield Fault(codes.ENTRY_LAUNCH, (what,), message, line)
    if launch["smem"] != [smem]:
        message = f"{name} launches with {launch['smem'][0]} bytes of shared memory at {_at(call)}; verified is {smem}"
        yield Fault(codes.ENTRY_LAUNCH, ("smem",), message, line)
    if not launch["stream"]:
        yield Fault(codes.ENTRY_LAUNCH, ("stream",), f"{name} launches on a stream other than the current one", line)


def _argument(
    call: EntryCall, parameter: str, value: str | tuple[Value, str], argument: Mapping[str, Any], case: Case
) -> str:
    """What is wrong with an argument, "" when nothing is."""
    if "other" in argument:
        return f"{argument['other']}"
    if isinstance(value, tuple):
        number, dtype = value
        if "address" in argument:
            operand = (argument.get("tensor") or {}).get("name") or "an address"
            return f"{operand}, not {_number(number)}"
        if _same(_plain(argument), number, dtype):
            return ""
        return f"{_number(_plain(argument))}, not {_number(number)}"
    if "address" not in argument:
        return f"the number {_number(_plain(argument))}, not {value}"
    assert call.wanted is not None
    tensor = argument.get("tensor") or {}
    operand = tensor.get("name") or ("null" if int(argument["address"]) == 0 else "an address")
    if not call.function.takes(value) and value not in call.wanted.point.null:
        return _own(call, value, tensor, case)
    address = call.given[value].address if value in call.given else 0
    return "" if int(argument["address"]) == address else f"{_place(operand, tensor, call)}, not {value}"


def _place(operand: str, tensor: Mapping[str, Any], call: EntryCall) -> str:
    if int(tensor.get("fresh", -1)) > 0:
        return "memory that the function allocates"
    off = operand in call.given and int(tensor["address"]) != call.given[operand].address
    return f"{operand} from another element on" if off else operand


def _own(call: EntryCall, name: str, tensor: Mapping[str, Any], case: Case) -> str:
    """A buffer that the caller does not give is an allocation of the function's, as the case has it."""
    assert call.wanted is not None
    buffer, point = case.buffer(name), call.wanted.point
    if buffer.role not in ("out", "scratch"):
        return f"something else: the function does not take {name}"
    shape, strides = point.shapes[name], tensor.get("strides", ())
    if int(tensor.get("fresh", -1)) < 1:
        return "no allocation, where the function does not take the buffer"
    if tensor["device"] != call.device:
        return f"an allocation on {tensor['device']}"
    if tensor["dtype"] != buffer.dtype_at(call.wanted.values):
        return f"an allocation of dtype {tensor['dtype']}"
    if tuple(tensor["shape"]) != shape or not views.is_contiguous(View(shape, tuple(strides))):
        return f"an allocation of shape {list(tensor['shape'])}, not {list(shape)}"
    if buffer.init is not None and tensor["fill"] != float(buffer.init):
        return f"an allocation that is not full of {buffer.init}"
    return ""


def _fresh(call: EntryCall, launch: Mapping[str, Any], answer: Mapping[str, Any], case: Case) -> Iterator[Fault]:
    """What is returned is what was launched; outputs of the function's own are returned."""
    assert call.wanted is not None
    name = call.function.name
    tensors = [a["tensor"] for a in launch["args"] if a.get("tensor")]
    found = [r for r in answer["returned"] if isinstance(r, Mapping)]
    for tensor in found:
        if int(tensor["fresh"]) > 0 and tensor not in tensors:
            message = f"{name} returns memory that the kernel is not given"
            yield Fault(codes.ENTRY_LAUNCH, ("returned",), message, int(launch["line"]))
    for (parameter, value), argument in zip(call.wanted.arguments, launch["args"], strict=False):
        own = isinstance(value, str) and not call.function.takes(value) and case.buffer(value).role == "out"
        if own and argument.get("tensor") not in found:
            message = f"{name} does not return {parameter}, which it allocates"
            yield Fault(codes.ENTRY_LAUNCH, ("returned",), message, int(launch["line"]))


def _mutated(call: EntryCall, declared: Sequence[str] | None, case: Case) -> Iterator[Fault]:
    """A custom operator says which of its operands it writes; torch may otherwise leave the call out, or move it."""
    for p in call.function.parameters if declared is not None else ():
        if p.kind == "buffer" and case.buffer(p.operand).role != "in" and p.name not in (declared or ()):
            message = f"{call.function.name} writes {p.name}, which its mutates_args leave out"
            yield Fault(codes.ENTRY_LAUNCH, ("mutates", p.name), message, call.function.line)


def _plain(argument: object) -> Any:
    if not isinstance(argument, Mapping):
        return argument
    if "float" in argument:
        return float.fromhex(argument["float"])
    return argument["bool"] if "bool" in argument else int(argument["int"]) if "int" in argument else argument


def _same(have: object, want: Value, dtype: str) -> bool:
    """Whether two numbers are the same bits when a kernel is given them as `dtype` ("": as they are)."""
    if not isinstance(have, int | float) or not isinstance(want, int | float):
        return False
    if dtype in ("f16", "bf16", "f32", "f64"):
        one, other = (encode(np.array([v], np.float64), dtype) for v in (have, want))
        return bool(one[0] == other[0])
    if not isinstance(have, int) or not isinstance(want, int):
        return False
    return have == want or (dtype in _WHOLE and (have - want) % (1 << DTYPES[dtype].bits) == 0)


def _number(value: object) -> str:
    return repr(value)


def _told(values: Mapping[str, object]) -> str:
    return ", ".join(f"{k}={v}" for k, v in values.items()) or "without template arguments"


def merged(found: Sequence[Fault]) -> list[tuple[Fault, int]]:
    """One of each kind, with how many calls show it; in order of the port's lines."""
    kinds: dict[tuple[object, ...], list[Fault]] = {}
    for fault in found:
        kinds.setdefault((fault.code, *fault.kind), []).append(fault)
    return sorted(((f[0], len(f)) for f in kinds.values()), key=lambda f: f[0].line)
