"""How each library computes the rows of bench.corpus_rows, if present: porter, vLLM, FlashInfer, quack, Triton.

vLLM's ops are loaded from the libraries that VLLM_C and VLLM_MOE_C name, FlashInfer's CuTeDSL kernels from
FLASHINFER_DIR. What is absent, or has no such kernel, is left out and said.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import torch

from bench.corpus_rows import EPS, WORKLOADS, Inputs, Shape, Side, Workload

Sides = dict[str, dict[str, Side]]  # workload -> side -> call


def _outputs(call: Callable[[Inputs], Any], *names: str) -> Side:
    """A side that writes into some of its inputs."""

    def side(d: Inputs) -> tuple[torch.Tensor, ...]:
        call(d)
        return tuple(d[n] for n in names)

    return side


def engine_sides(ops: Callable[[str], Any]) -> dict[str, tuple[str, Side]]:
    """Workload -> (name of the op, call) for a library with vLLM's names and arguments; `ops` gives an op or None."""
    made: dict[str, tuple[str, Side]] = {}

    def add(workload: str, name: str, call: Callable[[Any], Callable[[Inputs], Any]], *outputs: str) -> None:
        op = ops(name)
        if op is not None:
            made[workload] = (name, _outputs(call(op), *outputs))

    add("rms_norm", "rms_norm", lambda f: lambda d: f(d["out"], d["x"], d["w"], EPS), "out")
    add("fused_add_rms_norm", "fused_add_rms_norm", lambda f: lambda d: f(d["x"], d["r"], d["w"], EPS), "x", "r")
    add("silu_and_mul", "silu_and_mul", lambda f: lambda d: f(d["out"], d["x"]), "out")
    add("per_token_fp8", "dynamic_per_token_scaled_fp8_quant", lambda f: lambda d: f(d["q"], d["x"], d["s"], None),
        "q", "s")  # fmt: skip
    add("per_token_group128_fp8", "per_token_group_fp8_quant",
        lambda f: lambda d: f(d["x"], d["q"], d["g"], 128, 1e-10, -448.0, 448.0, False, False, False),
        "q", "g")  # fmt: skip
    add("per_token_group128_fp8 packed", "per_token_group_fp8_quant_packed",
        lambda f: lambda d: f(d["x"], d["q"], d["p"], 128, 1e-10, -448.0, 448.0), "q", "p")  # fmt: skip
    add("per_tensor_fp8", "dynamic_scaled_fp8_quant", lambda f: lambda d: f(d["q"], d["x"], d["s"]), "q", "s")
    add("static_fp8", "static_scaled_fp8_quant", lambda f: lambda d: f(d["q"], d["x"], d["scale"], None), "q")
    add("static_int8", "static_scaled_int8_quant", lambda f: lambda d: f(d["q"], d["x"], d["scale"], None), "q")
    add("per_token_int8", "dynamic_scaled_int8_quant", lambda f: lambda d: f(d["q"], d["x"], d["s"], None),
        "q", "s")  # fmt: skip
    add("per_token_int8 azp", "dynamic_scaled_int8_quant", lambda f: lambda d: f(d["q"], d["x"], d["s"], d["z"]),
        "q", "s", "z")  # fmt: skip
    add("per_token_group128_int8", "per_token_group_quant_int8",
        lambda f: lambda d: f(d["x"], d["q"], d["g"], 128, 1e-10, -128.0, 127.0), "q", "g")  # fmt: skip
    add("rms_norm_static_fp8", "rms_norm_static_fp8_quant",
        lambda f: lambda d: f(d["q"], d["x"], d["w"], d["scale"], EPS), "q")  # fmt: skip
    add("rms_norm_per_token_fp8", "rms_norm_dynamic_per_token_quant",
        lambda f: lambda d: f(d["q"], d["x"], d["w"], d["s"], EPS, None, None), "q", "s")  # fmt: skip
    add("silu_mul_group128_fp8", "silu_and_mul_per_block_quant",
        lambda f: lambda d: f(d["q"], d["x"], d["g"], 128), "q", "g")  # fmt: skip
    add("rotary 32+8x128", "rotary_embedding", lambda f: lambda d: f(d["p"], d["q"], d["k"], 128, d["cache"], True),
        "q", "k")  # fmt: skip
    add("topk_softmax k=8", "topk_softmax",
        lambda f: lambda d: f(d["w"], d["i"], d["s"], d["gate"], True, None, None), "w")  # fmt: skip
    add("moe_sum k=8", "moe_sum", lambda f: lambda d: f(d["x"], d["out"]), "out")
    add("moe_align bs=64 k=8", "moe_align_block_size",
        lambda f: lambda d: f(d["ids"], d["e"], 64, d["sorted"], d["blocks"], d["n"], None, None), "n")  # fmt: skip
    add("moe_permute k=8 E=128", "moe_permute",
        lambda f: lambda d: f(d["x"], d["ids"], d["token_expert"], None, 128, 128, 8, d["out"], d["offsets"],
                              d["inverse"], d["index"]), "out")  # fmt: skip
    return made


def porter_sides() -> dict[str, Side]:
    """The corpus: vLLM's signatures, and its own for what vLLM has no op for. Names that are not there are left out."""
    corpus = importlib.import_module("porter.corpus")

    def op(name: str) -> Any:
        return getattr(corpus, name, None)

    found = {workload: side for workload, (_, side) in engine_sides(op).items()}
    qk_norm, softmax = op("qk_norm"), op("softmax")
    if qk_norm is not None:
        found["qk_norm 32+8 heads"] = _outputs(lambda d: qk_norm(d["q"], d["k"], d["wq"], d["wk"], EPS), "q", "k")
    if softmax is not None:
        found["softmax"] = _outputs(lambda d: softmax(d["out"], d["x"]), "out")
    return found | block_sides(op)


def block_sides(op: Callable[[str], Any]) -> dict[str, Side]:
    """The corpus's operations with block scales, whose result is an argument, unlike other libraries'."""
    calls: dict[str, tuple[str, Callable[[Any, Inputs], Any], tuple[str, ...]]] = {
        "nvfp4": ("scaled_fp4_quant", lambda f, d: f(d["q4"], d["x"], d["s16"], d["g"]), ("q4", "s16")),
        "mxfp4": ("mxfp4_quantize", lambda f, d: f(d["q4"], d["x"], d["s32"]), ("q4", "s32")),
        "mxfp8": ("mxfp8_quantize", lambda f, d: f(d["q8"], d["x"], d["s32"]), ("q8", "s32")),
        "nvfp4 back": ("nvfp4_dequantize", lambda f, d: f(d["out"], d["q4"], d["s16"], d["g"]), ("out",)),
        "silu_mul_nvfp4": (
            "silu_and_mul_nvfp4_quant", lambda f, d: f(d["q4"], d["s16"], d["x"], d["g"]), ("q4", "s16"),
        ),
        "rms_norm_nvfp4": (
            "rms_norm_nvfp4_quant", lambda f, d: f(d["q4"], d["s16"], d["x"], d["w"], d["g"], EPS), ("q4", "s16"),
        ),
    }  # fmt: skip
    found: dict[str, Side] = {}
    for workload, (name, call, outputs) in calls.items():
        if (function := op(name)) is not None:
            found[workload] = _outputs(functools.partial(call, function), *outputs)
    return found


def vllm_sides(notes: list[str]) -> dict[str, Side]:
    namespaces = []
    for variable, name in (("VLLM_C", "_C"), ("VLLM_MOE_C", "_moe_C")):
        path = os.environ.get(variable, "")
        if not path:
            notes.append(f"vLLM: {variable} is not set")
            continue
        try:
            torch.ops.load_library(path)
            namespaces.append(getattr(torch.ops, name))
        except OSError as error:
            notes.append(f"vLLM: {path}: {error}"[:300])

    def op(name: str) -> Any:
        return next((getattr(n, name) for n in namespaces if hasattr(n, name)), None)

    found = {workload: side for workload, (_, side) in engine_sides(op).items()}
    norm = op("rms_norm")
    if norm is not None:

        def heads(d: Inputs) -> None:
            norm(d["q"], d["q"], d["wq"], EPS)
            norm(d["k"], d["k"], d["wk"], EPS)

        found["qk_norm 32+8 heads"] = _outputs(heads, "q", "k")
    return found


def flashinfer_sides(notes: list[str]) -> dict[str, dict[str, Side]]:
    """FlashInfer's CuTeDSL norms, without and with programmatic dependent launch."""
    folder = os.environ.get("FLASHINFER_DIR", "")
    if folder:
        sys.path.insert(0, folder)
    try:
        norms = importlib.import_module("flashinfer.norm.kernels.rmsnorm")
        added = importlib.import_module("flashinfer.norm.kernels.fused_add_rmsnorm").fused_add_rmsnorm_cute
    except Exception as error:
        notes.append(f"FlashInfer: {type(error).__name__}: {error}"[:300])
        return {}

    def sides(pdl: bool) -> dict[str, Side]:
        more = (0.0, True) if pdl else ()

        def heads(d: Inputs) -> None:
            norms.qk_rmsnorm_cute(d["q"], d["wq"], d["q"], EPS, *more)
            norms.qk_rmsnorm_cute(d["k"], d["wk"], d["k"], EPS, *more)

        return {
            "rms_norm": _outputs(lambda d: norms.rmsnorm_cute(d["x"], d["w"], d["out"], EPS, *more), "out"),
            "fused_add_rms_norm": _outputs(lambda d: added(d["x"], d["r"], d["w"], EPS, *more), "x", "r"),
            "qk_norm 32+8 heads": _outputs(heads, "q", "k"),
            "rms_norm_static_fp8": _outputs(
                lambda d: norms.rmsnorm_quant_cute(d["q"], d["x"], d["w"], d["scale"], EPS, *more), "q"
            ),
        }

    return {"flashinfer": sides(False), "flashinfer+pdl": sides(True)}


def quack_sides(notes: list[str]) -> dict[str, Side]:
    try:
        norm = importlib.import_module("quack.rmsnorm")._rmsnorm_fwd
        softmax = importlib.import_module("quack.softmax")._softmax_fwd
    except Exception as error:
        notes.append(f"quack: {type(error).__name__}: {error}"[:300])
        return {}
    return {
        "rms_norm": _outputs(lambda d: norm(d["x"], d["w"], d["out"], eps=EPS), "out"),
        "softmax": _outputs(lambda d: softmax(d["x"], d["out"]), "out"),
    }


def triton_sides(notes: list[str]) -> dict[str, Side]:
    try:
        kernels = importlib.import_module("bench.triton_kernels")
    except Exception as error:
        notes.append(f"Triton: {type(error).__name__}: {error}"[:300])
        return {}
    return {
        "rms_norm": _outputs(lambda d: kernels.rms_norm(d["out"], d["x"], d["w"], EPS), "out"),
        "silu_and_mul": _outputs(lambda d: kernels.silu_and_mul(d["out"], d["x"]), "out"),
        "softmax": _outputs(lambda d: kernels.softmax(d["out"], d["x"]), "out"),
    }


def compiled_side(workload: Workload, shape: Shape) -> Side:
    """torch.compile of the row's torch code, compiled for this shape alone: a recompile limit would mean eager."""
    torch._dynamo.reset()
    function = torch.compile(workload.compiled, mode="max-autotune-no-cudagraphs", dynamic=False)

    def side(d: Inputs) -> tuple[torch.Tensor, ...]:
        found = function(*(d[n] for n in workload.operands))
        return found if isinstance(found, tuple) else (found,)

    return side


def all_sides() -> tuple[Sides, list[str]]:
    """Every side of every workload that this machine has, torch.compile apart; and what is missing."""
    notes: list[str] = []
    by_library: dict[str, dict[str, Side]] = {"porter": porter_sides(), "vllm": vllm_sides(notes)}
    by_library |= flashinfer_sides(notes)
    by_library["quack"] = quack_sides(notes)
    by_library["triton"] = triton_sides(notes)
    found: Sides = {w.name: {} for w in WORKLOADS}
    for library, sides in by_library.items():
        for workload, side in sides.items():
            found[workload][library] = side
    return found, notes
