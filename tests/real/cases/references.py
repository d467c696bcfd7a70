"""float64 references of public kernels whose operands are named otherwise than porter's own reference kernels'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np

from porter.verify.numerics.formats import round_to

Arrays = Mapping[str, np.ndarray]
Table = Mapping[str, Any]
Results = dict[str, np.ndarray]


def quiet(function: Callable[..., Results]) -> Callable[..., Results]:
    """Overflow, division by zero and invalid operations give inf and NaN without a word."""

    def wrapped(*args: Any) -> Results:
        with np.errstate(all="ignore"):
            return function(*args)

    return wrapped


def row_softmax(x: np.ndarray) -> np.ndarray:
    """Softmax of the last dimension; a row of nothing but -inf, or with NaN or +inf, has no finite answer."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis=-1, keepdims=True)


@quiet
def softmax_inp(inputs: Arrays, scalars: Table, sizes: Table, args: Table) -> Results:
    return {"out": row_softmax(inputs["inp"])}


@quiet
def layer_norm_with_statistics(inputs: Arrays, scalars: Table, sizes: Table, args: Table) -> Results:
    """Not the mean: what is left of a sum that cancels has the errors of its terms."""
    x = inputs["inp"]
    centred = x - np.mean(x, axis=-1, keepdims=True)
    rstd = 1.0 / np.sqrt(np.mean(np.square(centred), axis=-1) + 1e-5)
    return {"out": centred * rstd[..., None] * inputs["weight"] + inputs["bias"], "rstd": rstd}


def reciprocal_rms(x: np.ndarray, epsilon: float) -> np.ndarray:
    return 1.0 / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + epsilon)


@quiet
def rms_norm_biased(inputs: Arrays, scalars: Table, sizes: Table, args: Table) -> Results:
    x = inputs["input"]
    return {"output": x * reciprocal_rms(x, scalars["eps"]) * (scalars["weight_bias"] + inputs["weight"])}


@quiet
def fused_add_rms_norm_biased(inputs: Arrays, scalars: Table, sizes: Table, args: Table) -> Results:
    """Statistics and result come from the sum before it is rounded."""
    x = inputs["input"] + inputs["residual"]
    weight = scalars["weight_bias"] + inputs["weight"]
    return {"residual": x, "input": x * reciprocal_rms(x, scalars["eps"]) * weight}


@quiet
def rms_norm_vllm(inputs: Arrays, scalars: Table, sizes: Table, args: Table) -> Results:
    x = inputs["input"]
    weight = inputs["weight"] if args["HasWeight"] else 1.0
    return {"out": x * reciprocal_rms(x, scalars["epsilon"]) * weight}


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    return round_to(x, dtype)


@quiet
def gated_activation_vllm(inputs: Arrays, scalars: Table, sizes: Table, args: Table) -> Results:
    """out = act(gate * alpha) * (up + beta), the activation rounded; which half is the gate depends on `act_first`."""
    x, y = np.split(inputs["input"], 2, axis=-1)
    limit, alpha, beta = (float(np.float32(scalars[n])) for n in ("limit", "alpha", "beta"))
    gate, up = (x, y) if args["act_first"] else (y, x)
    if args["HAS_CLAMP"]:
        gate, up = np.fmin(gate, limit), np.fmax(np.fmin(up, limit), -limit)
        gate = rounded(gate, args["scalar_t"])
        up = up if args["use_vec"] else rounded(up, args["scalar_t"])
    if "silu" in args["ACT_FN"]:
        activated = gate / (1.0 + np.exp(-gate * alpha))
    elif "tanh" in args["ACT_FN"]:
        activated = 0.5 * gate * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (gate + 0.044715 * gate**3)))
    else:
        activated = gate * 0.5 * (1.0 + np.vectorize(erf, otypes=[float])(gate * np.sqrt(0.5)))
    return {"out": rounded(activated, args["scalar_t"]) * (up + beta)}


@quiet
def fused_residual(inputs: Arrays, scalars: Table, sizes: Table, args: Table) -> Results:
    """Only the sum: kernels with the variance from sums of squares are far from float64 where the row cancels."""
    return {"residual": inputs["inp1"] + inputs["inp2"]}


@quiet
def rms_norm_scaled(inputs: Arrays, scalars: Table, sizes: Table, args: Table) -> Results:
    return {"y": inputs["x"] * reciprocal_rms(inputs["x"], 1e-5) * scalars["g"]}


@quiet
def layer_norm_scaled(inputs: Arrays, scalars: Table, sizes: Table, args: Table) -> Results:
    centred = inputs["x"] - np.mean(inputs["x"], axis=-1, keepdims=True)
    return {"y": centred * reciprocal_rms(centred, 1e-5) * scalars["g"] + scalars["b"]}
