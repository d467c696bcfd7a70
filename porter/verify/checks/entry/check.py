"""The check `entry`: the port's torch-facing functions are called, and launch what is verified, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from porter import codes
from porter.case.expressions import Value
from porter.case.instances import instance_values
from porter.case.reader import Case
from porter.corpus.runtime import ArtifactCache, digest
from porter.corpus.runtime.sources import source_closure
from porter.model import Diagnostic, KernelInfo, Status, Verdict
from porter.model.facts import EntryFacts
from porter.source import Span
from porter.verify.checks.entry import judge
from porter.verify.checks.entry.expected import EntryCall, call_in
from porter.verify.checks.entry.functions import (
    TorchFacing,
    is_given,
    launches_somewhere,
    launching_nothing,
    torch_facing,
)
from porter.verify.checks.entry.judge import Fault
from porter.verify.checks.entry.situations import shaping, situations
from porter.verify.compile.worker import entry_answers
from porter.wording import plural

Ask = Callable[[Path, Sequence[Mapping[str, Any]]], dict[str, Any]]  # calls to their answers
NAME = "entry"
FORMAT = "1"  # of the calls and answers that are kept
SM_COUNTS = (132, 78, 160)
_BATCH = 2000
_MOST = 4  # diagnostics
_HELP = {
    codes.ENTRY_LAUNCH: "launch what launch_config gives, with the operands that the function was given",
    codes.ENTRY_TENSOR_USE: "ask tensors for shapes, strides, dtypes, devices and addresses; the kernel does the work",
    codes.ENTRY_ACCEPTS: "check operands with runtime.check, alignment with runtime.aligned, and raise ValueError",
}


def check_entry(
    port_path: Path, text: str, case: Case, info: KernelInfo, only: Sequence[int] = (), ask: Ask = entry_answers
) -> Verdict:
    """Call the port's torch-facing functions for the instances in `only` (numbers of the case's; (): all).

    `text` is the port as it was read; `ask` is who calls them. Raises nothing for what is in the port.
    """
    functions = torch_facing(text, case, info)
    if not functions:
        if launches_somewhere(text):
            message = "KERNEL is launched, but not by a function that can be called: write one at the top of the module"
            return _failed([Diagnostic(codes.ENTRY_ACCEPTS, message, Span(str(port_path), 1))], 0)
        if idle := launching_nothing(text):
            names = ", ".join(f.name for f in idle)
            message = f"{names} launches nothing: KERNEL is not launched anywhere in the port"
            at = Span(str(port_path), idle[0].lineno)
            return _failed([Diagnostic(codes.ENTRY_LAUNCH, message, at, help=_HELP[codes.ENTRY_LAUNCH])], 0)
        return Verdict(NAME, Status.SKIP, "the port has no function that launches its kernel")
    found = [f for function in functions for f in _unbound(function, case)]
    if found:
        return _failed(_diagnostics(port_path, found), 0)
    sources = [f"{file.name} {sha}" for file, sha in source_closure(port_path)]
    values = [dict(instance_values(info, i.instance)) for i in case.instances]
    calls = _calls(functions, case, info, values, only or range(len(values)), digest([FORMAT, *sources]))
    answers = _answers(port_path, sources, calls, ask)
    if isinstance(answers, Fault):
        return _failed(_diagnostics(port_path, [answers]), 0)
    for call, answer in zip(calls, answers, strict=True):
        try:
            found += judge.faults(call, answer, case)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            message = f"the process that calls {call.function.name} gave an invalid answer: {type(error).__name__}"
            found.append(Fault(codes.ENTRY_ACCEPTS, ("nonsense",), message, call.function.line))
    if found:
        return _failed(_diagnostics(port_path, found), len(calls))
    names = ", ".join(f.name for f in functions)
    detail = f"{names} launches what is verified and does nothing else ({plural(len(calls), 'call')})"
    return Verdict(NAME, Status.PASS, detail, (), EntryFacts(len(calls), tuple(f.name for f in functions)))


def _unbound(function: TorchFacing, case: Case) -> list[Fault]:
    """Parameters that no operand of the case is for, and inputs that the function does not take."""
    found = []
    if function.unknown:
        names = ", ".join(function.unknown)
        message = f"{function.name} takes {names}, and the case names no such operand, scalar or size"
        found.append(Fault(codes.ENTRY_ACCEPTS, ("unknown", function.name), message, function.line))
    else:
        for buffer in case.buffers:
            if buffer.role in ("in", "inout") and not function.takes(buffer.name):
                message = f"{function.name} does not take {buffer.name}, an input of the kernel"
                found.append(Fault(codes.ENTRY_ACCEPTS, ("input", buffer.name), message, function.line))
        for name, _ in case.scalars:
            if is_given(case, name) and not function.takes(name) and name not in shaping(case):
                message = f"{function.name} does not take {name}, which only its caller knows"
                found.append(Fault(codes.ENTRY_ACCEPTS, ("scalar", name), message, function.line))
    return found


def _calls(
    functions: Sequence[TorchFacing],
    case: Case,
    info: KernelInfo,
    values: Sequence[Mapping[str, Value]],
    only: Sequence[int],
    seed: str,
) -> list[EntryCall]:
    found: dict[str, EntryCall] = {}
    for function in functions:
        for number in only:
            for n, situation in enumerate(situations(case, number, values[number], function, seed)):
                device = "cuda:1" if n % 7 == 3 else "cuda:0"
                call = call_in(situation, case, info, values, function, device, SM_COUNTS[n % 3])
                if call is not None:
                    found.setdefault(json.dumps(call.question(), sort_keys=True), call)
    return list(found.values())


def _answers(
    port_path: Path, sources: Sequence[str], calls: Sequence[EntryCall], ask: Ask
) -> list[Mapping[str, Any]] | Fault:
    """The answer to each call, remembered; a fault where the process that is asked dies."""
    questions = [c.question() for c in calls]
    cache = ArtifactCache("port-entries")
    key = digest([FORMAT, *sources, _own_text(), json.dumps(questions, sort_keys=True)])
    folder = cache.get(key)
    if folder is not None:
        return list(json.loads((folder / "answers.json").read_text(encoding="utf-8")))
    found: list[Mapping[str, Any]] = []
    for start in range(0, len(questions), _BATCH):
        part = questions[start : start + _BATCH]
        answer = ask(port_path, part)
        if not answer["ok"]:
            return Fault(
                codes.ENTRY_ACCEPTS, ("died",), f"calling the port failed: {answer['error']}", int(answer["line"])
            )
        if len(answer["answers"]) != len(part):
            return Fault(codes.ENTRY_ACCEPTS, ("died",), "calling the port failed: not an answer to each call", 1)
        found += answer["answers"]
    cache.put(key, {"answers.json": json.dumps(found).encode()})
    return found


def _own_text() -> str:
    """A hash of the stand-ins: what they answer changes with them."""
    folder = Path(__file__).parent
    names = ("child.py", "record.py", "standins.py", "torch_standins.py", "views.py")
    return digest([(folder / name).read_text(encoding="utf-8") for name in names])


def _diagnostics(port_path: Path, found: Sequence[Fault]) -> list[Diagnostic]:
    made = []
    for fault, calls in judge.merged(found):
        more = f" (and in {calls - 1} more calls)" if calls > 1 else ""
        span = Span(str(port_path), fault.line or 1)
        made.append(Diagnostic(fault.code, fault.message + more, span, help=_HELP[fault.code]))
    return made


def _failed(found: Sequence[Diagnostic], calls: int) -> Verdict:
    return Verdict(NAME, Status.FAIL, found[0].message, tuple(found[:_MOST]), EntryFacts(calls))
