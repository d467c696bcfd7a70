"""How the inputs of a model's linear layers are quantised: read from "quantization_config" in its config.json."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "none"  # inputs stay as they are: no quantisation, or of weights only
# scheme -> what it is
SCHEMES = {
    NONE: "inputs are not quantised",
    "fp8_static": "e4m3, one scale, known beforehand",
    "fp8_token": "e4m3, a scale a token",
    "fp8_block": "e4m3, a scale for 128 elements of a token",
    "int8_static": "int8, one scale, known beforehand",
    "int8_token": "int8, a scale a token",
    "nvfp4": "e2m1, a scale for 16 elements of a token",
    "mxfp8": "e4m3, a power of two for 32 elements of a token",
}
_WEIGHTS_ONLY = ("gptq", "gptq_marlin", "awq", "awq_marlin", "bitsandbytes", "hqq", "auto-round", "mxfp4")
# linear layers by where their input comes from; names as in a checkpoint, after "model.layers.N."
PARTS: Mapping[str, tuple[str, ...]] = {
    "qkv": ("self_attn.q_proj", "self_attn.q_a_proj"),
    "q_b": ("self_attn.q_b_proj",),
    "o": ("self_attn.o_proj",),
    "up": ("mlp.gate_proj",),
    "down": ("mlp.down_proj",),
    "shared_up": ("mlp.shared_experts.gate_proj",),
    "shared_down": ("mlp.shared_experts.down_proj",),
    "experts_up": ("mlp.experts.0.gate_proj", "block_sparse_moe.experts.0.w1"),
    "experts_down": ("mlp.experts.0.down_proj", "block_sparse_moe.experts.0.w2"),
}


class UnknownScheme(ValueError):
    """A quantisation that is not known."""


@dataclass(frozen=True)
class Schemes:
    """The scheme of quantised inputs, and patterns for the names of linear layers whose input stays as it is."""

    scheme: str = NONE
    ignored: tuple[str, ...] = ()

    def __str__(self) -> str:
        return SCHEMES[self.scheme] if self.scheme == NONE else f"inputs quantised: {SCHEMES[self.scheme]}"

    def of(self, part: str, layer: int) -> str:
        """The scheme of the input of one of PARTS in one layer."""
        if self.scheme == NONE:
            return NONE
        names = [f"model.layers.{layer}.{name}" for name in PARTS[part]]
        return NONE if any(_matches(p, n) for p in self.ignored for n in names) else self.scheme


def _matches(pattern: str, name: str) -> bool:
    """Whether a pattern of a checkpoint means a layer: "re:" and a regular expression, with *, or a name of it or of
    what it is part of."""
    if pattern.startswith("re:"):
        return re.match(pattern[3:], name) is not None
    if "*" in pattern:
        return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"{pattern}.*")
    return name == pattern or name.startswith(f"{pattern}.")


def read_schemes(given: Mapping[str, Any] | None) -> Schemes:
    """The schemes of a "quantization_config" (None: not quantised). Raises UnknownScheme for one that is not known."""
    if not given:
        return Schemes()
    method = str(given.get("quant_method") or given.get("producer", {}).get("name", "")).lower()
    ignored: Sequence[str] = given.get("ignore") or given.get("modules_to_not_convert") or ()
    if method in _WEIGHTS_ONLY:
        scheme = NONE
    elif method == "fp8":
        scheme = _fp8(given)
    elif method == "fbgemm_fp8":
        scheme = "fp8_token"
    elif method == "modelopt":
        given = given.get("quantization") or given
        ignored = given.get("exclude_modules") or given.get("ignore") or ()
        scheme = _of_names(method, str(given.get("quant_algo")), {"FP8": "fp8_static", "NVFP4": "nvfp4"})
    elif method == "compressed-tensors":
        scheme = _compressed(given)
    else:
        known = ("fp8", "fbgemm_fp8", "modelopt", "compressed-tensors", *_WEIGHTS_ONLY)
        raise UnknownScheme(f"quant_method {method!r} is not known; known: {', '.join(known)}")
    try:
        for pattern in ignored:
            _matches(pattern, "")
    except re.error as error:
        raise UnknownScheme(f"a layer that is not quantised has no regular expression for its name: {error}") from None
    return Schemes(scheme, tuple(ignored))


def _fp8(given: Mapping[str, Any]) -> str:
    block = given.get("weight_block_size")
    if block is not None:
        if list(block) != [128, 128]:
            raise UnknownScheme(f"blocks of weights are {block}, known: [128, 128]")
        return "fp8_block"
    names = {"static": "fp8_static", "dynamic": "fp8_token"}
    return _of_names("fp8", str(given.get("activation_scheme", "dynamic")), names)


def _compressed(given: Mapping[str, Any]) -> str:
    groups = list(given.get("config_groups", {}).values())
    found = {_compressed_group(g.get("input_activations")) for g in groups}
    if len(found) != 1:
        raise UnknownScheme(f"the groups of compressed-tensors have different inputs: {', '.join(sorted(found))}")
    return found.pop()


def _compressed_group(inputs: Mapping[str, Any] | None) -> str:
    if inputs is None:
        return NONE
    bits, kind, strategy = inputs.get("num_bits"), inputs.get("type"), inputs.get("strategy")
    group, when = inputs.get("group_size"), "dynamic" if inputs.get("dynamic") else "static"
    if (kind, bits, inputs.get("symmetric", True)) == ("float", 4, True) and group == 16:
        return "nvfp4"
    if (kind, bits) == ("float", 8) and strategy == "group" and group == 128:
        return "fp8_block"
    if (kind, bits) == ("float", 8) and group == 32:
        return "mxfp8"
    if bits == 8 and inputs.get("symmetric", True) and not group:
        name = f"{'fp8' if kind == 'float' else 'int8'}_{'token' if strategy == 'token' else 'static'}"
        if (when == "dynamic") == (strategy == "token"):
            return name
    raise UnknownScheme(f"inputs of compressed-tensors with {dict(inputs)} are not known")


def _of_names(method: str, name: str, known: Mapping[str, str]) -> str:
    if name not in known:
        raise UnknownScheme(f"{method} with {name!r} is not known; known: {', '.join(known)}")
    return known[name]
