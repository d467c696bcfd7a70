"""Arguments of `porter build` and `porter tune` about a model, and the list of its calls for people and programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from porter.corpus.models.calls import TOKENS, ModelCalls, model_calls


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers separated by commas; raises ValueError (which argparse reports) for others."""
    found = tuple(int(n) for n in text.split(","))
    if min(found) < 0:
        raise ValueError(text)
    return found


def add_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    """The arguments, of a command that would `verb` what a model needs."""
    group = parser.add_argument_group("for a model")
    group.add_argument(
        "--model", type=Path, metavar="CONFIG",
        help=f"{verb} what an engine calls for this model: its config.json, or the folder with it",
    )  # fmt: skip
    group.add_argument(
        "--tensor-parallel", type=int, metavar="N", help="GPUs that each layer is divided among (default: 1)"
    )
    group.add_argument(
        "--no-fusion", action="store_true", help="norms and activations do not quantise: one op after the other"
    )
    group.add_argument("--dry-run", action="store_true", help="print the list of calls and do nothing else")
    group.add_argument("--json", action="store_true", help="print JSON, which `porter build` takes as a list")
    if verb == "compile":
        group.add_argument("--tokens", metavar="N,N,...", type=numbers, help=f"default: {','.join(map(str, TOKENS))}")


def check(args: argparse.Namespace, other: str | None) -> None:
    """Raise ValueError for arguments that do not go together; `other`: what was asked for besides a model, if so."""
    if args.model is not None and other is not None:
        raise ValueError(f"give --model or {other}, not both")
    for name in ("dry_run", "tensor_parallel", "no_fusion"):
        if args.model is None and getattr(args, name):
            raise ValueError(f"--{name.replace('_', '-')} is about a model; give its config.json with --model")


def calls(args: argparse.Namespace, arch: str) -> ModelCalls:
    """The calls of the model that the arguments name. Raises ModelError."""
    gpus = 1 if args.tensor_parallel is None else args.tensor_parallel
    tokens = tuple(args.tokens or TOKENS)
    return model_calls(args.model, tensor_parallel=gpus, fusion=not args.no_fusion, arch=arch, tokens=tokens)


def as_json(found: ModelCalls) -> dict[str, Any]:
    """{model, calls, left_out}, for `json`."""
    left_out = {op: list(places) for op, places in found.left_out.items()}
    return {"model": found.model.kind, "calls": [dict(call) for call in found.calls], "left_out": left_out}


def show(args: argparse.Namespace, found: ModelCalls, more: Mapping[str, Sequence[Any]]) -> None:
    """Print the list of calls, with a column, or key, of each call for every name in `more`."""
    if args.json:
        listed = as_json(found)
        listed["calls"] = [
            {**call, **{name: column[i] for name, column in more.items()}} for i, call in enumerate(listed["calls"])
        ]
        print(json.dumps(listed, indent=1))
        return
    model = found.model
    print(f"{model.kind}, {model.layers} layers, hidden size {model.hidden}, {model.dtype}, {model.schemes}")
    for i, call in enumerate(found.calls):
        counts = ", ".join(f"{column[i]} {name}" for name, column in more.items())
        print(f"\n{call['op']} ({counts})\n  for: {', '.join(call['for'])}")
        print("  " + ", ".join(f"{key}={value}" for key, value in call["args"].items()))
    if found.left_out:
        print("\nnot in the corpus:")
        for op, places in found.left_out.items():
            print(f"  {op}: {', '.join(places)}")
