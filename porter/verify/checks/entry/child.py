"""Calls of a port's torch-facing function in the fenced child that imports it: stand-ins in, a record out."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

from porter.verify.checks.entry import standins
from porter.verify.checks.entry.record import Record, RefusedUse, returned
from porter.verify.checks.entry.standins import Kind, Plain, StandInFacts
from porter.verify.checks.entry.views import View

STREAM = 0x5EED0  # the handle of the current stream
Failure = Callable[[BaseException], dict[str, Any]]


def call_all(module: Any, request: Mapping[str, Any], failure: Failure, with_torch: bool) -> dict[str, Any]:
    """Answers to `request["calls"]`, in order. `failure` describes what the port raised; `with_torch`: it may know
    torch, so that stand-ins have to be torch.Tensors.

    A call is {"function", "arguments", "tensors", "device", "sm_count", "config"}: an argument is {"tensor": number},
    {"value": v} or {"null": true}; `config` are the keywords of `launch_config` that are to be asked for beside it.
    """
    kind: Kind = Plain()
    if with_torch:
        from porter.verify.checks.entry.torch_standins import TorchKind

        kind = TorchKind()
    answers = []
    try:
        for call in request["calls"]:
            os.environ["PORTER_SM_COUNT"] = str(call["sm_count"])
            answers.append(_call(module, call, request["port"], kind, with_torch, failure))
    finally:
        os.environ.pop("PORTER_SM_COUNT", None)
    return {"answers": answers}


def _call(
    module: Any, call: Mapping[str, Any], file: str, kind: Kind, with_torch: bool, failure: Failure
) -> dict[str, Any]:
    record = Record(file, STREAM)
    standins.begin(record, kind)
    given = [
        standins.make(StandInFacts(t["name"], t["dtype"], _view(t["view"]), t["address"], t["device"]))
        for t in call["tensors"]
    ]
    arguments = {
        name: None if "null" in a else given[a["tensor"]] if "tensor" in a else a["value"]
        for name, a in call["arguments"].items()
    }
    function = getattr(module, call["function"])
    answer: dict[str, Any] = {"error": None, "returned": [], "mutates": _mutated(function)}
    with contextlib.ExitStack() as stack:
        stack.enter_context(record.in_place_of_launches())
        if with_torch:
            from porter.verify.checks.entry.torch_standins import torch_seen

            stack.enter_context(torch_seen(record, call["device"]))
        try:
            answer["returned"] = returned(_plain(function)(**arguments))
        except RefusedUse:
            pass  # in the record
        except Exception as error:
            answer["error"] = failure(error)
    answer |= {"launches": record.launches, "uses": record.uses, "config": None}
    if call["config"] is not None:
        try:
            config = module.launch_config
            takes = inspect.signature(config).parameters.values()
            every = any(p.kind is p.VAR_KEYWORD for p in takes)
            names = {p.name for p in takes}
            grid, block, smem = config(**{k: v for k, v in call["config"].items() if every or k in names})
            answer["config"] = {"grid": [int(v) for v in grid], "block": [int(v) for v in block], "smem": int(smem)}
        except Exception as error:
            answer["config"] = failure(error)
    return answer


def _view(given: Any) -> View:
    shape, strides = given
    return View(tuple(shape), tuple(strides))


def _mutated(function: Any) -> list[str] | None:
    """The arguments that a torch.library.custom_op says it writes; None for any other function."""
    overload = getattr(function, "_opoverload", None)
    if overload is None:
        return None
    arguments = overload._schema.arguments
    return [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]


def _plain(function: Any) -> Any:
    """The function under torch.library.custom_op."""
    return getattr(function, "_init_fn", function)
