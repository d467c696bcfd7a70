"""Activations as engines call them: out variants with vLLM's names and schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.activation import reference
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, row_dimensions, widest_access
from porter.corpus.ops.spread import spread_elements
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op

FLOATS = ("bf16", "f16", "f32")


def halves(result: Any, input: Any) -> tuple[int, int]:
    """(rows, outputs of a row); raises ValueError unless input is twice as long as result in the last dimension."""
    if input.dim() < 1 or input.shape[-1] % 2:
        raise ValueError(f"the last dimension of input must be even, input has shape {tuple(input.shape)}")
    d = input.shape[-1] // 2
    rows, inner = row_dimensions([("the half of input", input[..., :d]), ("result", result)])
    if inner != 1:
        raise Unsupported(f"input has strides {input.stride()}: its rows are not evenly spaced")
    return rows, d


def _once(profile: str) -> bool:
    """Whether an activation and its product are rounded once, as FlashInfer has it, or each on its own, as vLLM."""
    if profile not in ("vllm", "flashinfer"):
        raise ValueError(f"profile is vllm or flashinfer, not {profile!r}")
    return profile == "flashinfer"


def _gated(device: Device, result: Any, input: Any, **choices: Any) -> Plan:
    from porter.corpus.kernels.activation.gated import Gated

    dtype = check_dtype("input", input, *FLOATS)
    check_dtype("result", result, dtype)
    rows, d = halves(result, input)
    if rows == 0 or d == 0:
        return None
    vec = access_width(d, [result, input], most=widest_access(device, rows))
    if choices.get("interleaved"):
        vec = min(access_width(d, [result]), access_width(2 * d, [input]) // 2)
        if vec == 0:
            raise Unsupported("input is not aligned to a pair of gate and up")
    spread = spread_elements(device, "silu_and_mul", dtype, rows, d, vec)
    kernel = Gated(
        dtype, d, vec, spread.threads, spread.rows, pdl=device.pdl, prefetch=spread.prefetch,
        streaming=spread.streaming, prefetch_blocks=spread.prefetch_blocks, **choices,
    )  # fmt: skip
    blocks = kernel.blocks(rows)
    direct = input.dim() == 2

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:  # without *_, which takes longer
            return (
                lambda result, input: launch(result, input, blocks),
                lambda result, input, a: launch(result, input, blocks),
                lambda result, input, a, b: launch(result, input, blocks),
                lambda result, input, a, b, c: launch(result, input, blocks),
            )[len(choices.keys() & {"limit", "alpha", "beta", "once"})]
        return lambda result, input, *_: launch(as_rows(result, 1), as_rows(input, 1), blocks)

    return kernel, bind


@op(
    "silu_and_mul(Tensor(a!) result, Tensor input, str profile='vllm') -> ()",
    key="input.nbytes, profile",
    fallback=reference.silu_and_mul,
)
def silu_and_mul(device: Device, result: Any, input: Any, profile: str) -> Plan:
    """`result` = silu(gate) * up, where a row of `input` (..., 2 d) is gate, then up.

    bfloat16, float16 or float32, last dimensions contiguous, `result` (..., d). silu is computed in float32. Profile
    "vllm": it is rounded to the dtype, the product again: equal to the bit to `F.silu(gate) * up`; "flashinfer": the
    product of float32 numbers is rounded once. Raises ValueError for other arguments.
    """
    return _gated(device, result, input, once=_once(profile))


@op(
    "mul_and_silu(Tensor(a!) out, Tensor input, str profile='vllm') -> ()",
    key="input.nbytes, profile",
    fallback=reference.mul_and_silu,
)
def mul_and_silu(device: Device, out: Any, input: Any, profile: str) -> Plan:
    """`out` = first * silu(second), the halves of the rows of `input`. Otherwise as `silu_and_mul`."""
    return _gated(device, out, input, second=True, once=_once(profile))


@op(
    "gelu_and_mul(Tensor(a!) out, Tensor input, str profile='vllm') -> ()",
    key="input.nbytes, profile",
    fallback=reference.gelu_and_mul,
)
def gelu_and_mul(device: Device, out: Any, input: Any, profile: str) -> Plan:
    """`out` = gelu(gate) * up with the error function. Otherwise as `silu_and_mul`."""
    return _gated(device, out, input, act="gelu", once=_once(profile))


@op(
    "gelu_tanh_and_mul(Tensor(a!) out, Tensor input, str profile='vllm') -> ()",
    key="input.nbytes, profile",
    fallback=reference.gelu_tanh_and_mul,
)
def gelu_tanh_and_mul(device: Device, out: Any, input: Any, profile: str) -> Plan:
    """`out` = gelu(gate) * up with the tanh approximation. Otherwise as `silu_and_mul`."""
    return _gated(device, out, input, act="gelu_tanh", once=_once(profile))


@op(
    "fatrelu_and_mul(Tensor(a!) out, Tensor input, float threshold) -> ()",
    key="input.nbytes, threshold",
    fallback=reference.fatrelu_and_mul,
)
def fatrelu_and_mul(device: Device, out: Any, input: Any, threshold: float) -> Plan:
    """`out` = (gate where it is above the threshold, else 0) * up. Otherwise as `silu_and_mul`."""
    return _gated(device, out, input, act="fatrelu", limit=threshold)


@op(
    "silu_and_mul_with_clamp(Tensor(a!) result, Tensor input, float limit, float alpha=1.0, float beta=0.0) -> ()",
    key=compact_key("input.nbytes", {"limit": 7.0, "alpha": 1.0, "beta": 0.0}),
    fallback=reference.silu_and_mul_with_clamp,
)  # fmt: skip
def silu_and_mul_with_clamp(device: Device, result: Any, input: Any, limit: float, alpha: float, beta: float) -> Plan:
    """`result` = g * sigmoid(alpha g) * (u + beta), g = min(gate, limit), u = up clamped to +-limit.

    The clamps are in the dtype; the activation and u + beta are rounded to it before the product. Otherwise as
    `silu_and_mul`.
    """
    return _gated(device, result, input, act="silu_clamp", limit=limit, alpha=alpha, beta=beta)


@op(
    "swigluoai_and_mul(Tensor(a!) out, Tensor input, float alpha=1.702, float limit=7.0) -> ()",
    key=compact_key("input.nbytes", {"alpha": 1.702, "limit": 7.0}),
    fallback=reference.swigluoai_and_mul,
)  # fmt: skip
def swigluoai_and_mul(device: Device, out: Any, input: Any, alpha: float, limit: float) -> Plan:
    """`out` = (u + 1) * g * sigmoid(alpha g), g = min(input[0::2], limit), u = input[1::2] clamped to +-limit.

    Gate and up alternate in a row of `input`; float32 throughout, rounded once. Otherwise as `silu_and_mul`.
    """
    return _gated(device, out, input, act="swigluoai", interleaved=True, alpha=alpha, limit=limit)


def _pointwise(device: Device, act: str, out: Any, input: Any) -> Plan:
    from porter.corpus.kernels.activation.pointwise import Pointwise

    dtype = check_dtype("input", input, *FLOATS)
    check_dtype("out", out, dtype)
    rows, inner = row_dimensions([("input", input), ("out", out)])
    if inner != 1:
        raise Unsupported(f"input has strides {input.stride()}: its rows are not evenly spaced")
    d = input.shape[-1]
    if rows == 0 or d == 0:
        return None
    vec = access_width(d, [out, input], most=widest_access(device, rows))
    spread = spread_elements(device, "relu_squared", dtype, rows, d, vec)
    kernel = Pointwise(
        act,
        dtype,
        d,
        vec,
        spread.threads,
        spread.rows,
        device.pdl,
        spread.prefetch,
        spread.streaming,
        spread.prefetch_blocks,
    )
    blocks, direct = kernel.blocks(rows), input.dim() == 2

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda out, input: launch(out, input, blocks)
        return lambda out, input: launch(as_rows(out, 1), as_rows(input, 1), blocks)

    return kernel, bind


@op(
    "relu_squared(Tensor(a!) out, Tensor input) -> ()",
    key="input.nbytes",
    fallback=reference.relu_squared,
    in_place=("input",),
)
def relu_squared(device: Device, out: Any, input: Any) -> Plan:
    """`out` = max(input, 0)^2 in float32, rounded once.

    `input` (..., d) in bfloat16, float16 or float32, last dimension contiguous; `out` like it, or `input` itself.
    Raises ValueError for other arguments.
    """
    return _pointwise(device, "relu_squared", out, input)


@op(
    "gelu_new(Tensor(a!) out, Tensor input) -> ()",
    key="input.nbytes",
    fallback=reference.gelu_new,
    in_place=("input",),
)
def gelu_new(device: Device, out: Any, input: Any) -> Plan:
    """`out` = x/2 * (1 + tanh(0.79788456 (x + 0.044715 x^3))), every step rounded to the dtype. Otherwise as
    `relu_squared`."""
    return _pointwise(device, "gelu_new", out, input)


@op(
    "gelu_fast(Tensor(a!) out, Tensor input) -> ()",
    key="input.nbytes",
    fallback=reference.gelu_fast,
    in_place=("input",),
)
def gelu_fast(device: Device, out: Any, input: Any) -> Plan:
    """`out` = x/2 * (1 + tanh(0.79788456 x * (1 + 0.044715 x * x))), every step rounded to the dtype. Otherwise as
    `relu_squared`."""
    return _pointwise(device, "gelu_fast", out, input)


@op(
    "gelu_quick(Tensor(a!) out, Tensor input) -> ()",
    key="input.nbytes",
    fallback=reference.gelu_quick,
    in_place=("input",),
)
def gelu_quick(device: Device, out: Any, input: Any) -> Plan:
    """`out` = x * sigmoid(1.702 x) in float32, rounded once. Otherwise as `relu_squared`."""
    return _pointwise(device, "gelu_quick", out, input)
