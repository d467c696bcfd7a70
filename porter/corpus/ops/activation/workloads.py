"""Workloads of the activations."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.workload import Workload, constant, empty, normal

WIDTHS = tuple({"width": d} for d in (2048, 4096, 8192, 14336))
FEW_WIDTHS = ({"width": 2048}, {"width": 14336})


def _silu_and_mul(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    x = normal(tokens, 2 * width, dtype=dtype, device=device)
    return empty(tokens, width, dtype=dtype, device=device), x, "vllm"


def _silu_and_mul_quant(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    _, x, _ = _silu_and_mul(tokens, dtype, device, width)
    return empty(tokens, width, dtype="float8_e4m3fn", device=device), x, constant(0.02, device)


def _silu_and_mul_per_block_quant(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    codes, x, _ = _silu_and_mul_quant(tokens, dtype, device, width)
    return codes, x, empty(tokens, width // 128, dtype="float32", device=device), 128, None, False


def _gated_traffic(tokens: int, itemsize: int, width: int) -> int:
    return 3 * tokens * width * itemsize


def _gated(*numbers: float) -> Workload:
    """As silu_and_mul, with `numbers` for the profile if there are any."""

    def make(*args: Any, **dims: Any) -> tuple[Any, ...]:
        out, x, profile = _silu_and_mul(*args, **dims)
        return out, x, *(numbers or (profile,))

    return Workload(make, _gated_traffic, FEW_WIDTHS, tuned=False)


def _pointwise(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    return empty(tokens, width, dtype=dtype, device=device), normal(tokens, width, dtype=dtype, device=device)


def _masked(tokens: int, dtype: Any, device: Any, width: int, experts: int) -> tuple[Any, ...]:
    """`tokens` for each expert, with room for half as many more."""
    places, groups = tokens + -(-tokens // 2), width // 128
    x = normal(experts, places, 2 * width, dtype=dtype, device=device)
    counts = empty(experts, dtype="int32", device=device)
    if str(device) != "meta":
        counts.fill_(tokens)
    codes = empty(experts, places, width, dtype="float8_e4m3fn", device=device)
    return x, counts, codes, empty(experts, groups, places, dtype="float32", device=device).transpose(1, 2), False


ACTIVATIONS: dict[str, Workload] = {
    "silu_and_mul": Workload(_silu_and_mul, _gated_traffic, WIDTHS),
    "silu_and_mul_quant": Workload(_silu_and_mul_quant, lambda t, e, width: (2 * e + 1) * t * width, WIDTHS),
    "silu_and_mul_per_block_quant": Workload(
        _silu_and_mul_per_block_quant, lambda t, e, width: (2 * e + 1) * t * width + 4 * t * (width // 128), WIDTHS
    ),
    "persistent_masked_m_silu_mul_quant": Workload(
        _masked, lambda t, e, width, experts: experts * t * ((2 * e + 1) * width + 4 * (width // 128)),
        ({"width": 2048, "experts": 8},),
    ),
    # ops that launch the kernels of silu_and_mul with other choices
    **{name: _gated() for name in ("mul_and_silu", "gelu_and_mul", "gelu_tanh_and_mul")},
    "fatrelu_and_mul": _gated(0.1),
    "silu_and_mul_with_clamp": _gated(7.0, 1.0, 0.0),
    "swigluoai_and_mul": _gated(1.702, 7.0),
    **{
        name: Workload(_pointwise, lambda t, e, width: 2 * t * width * e, FEW_WIDTHS, tuned=name == "relu_squared")
        for name in ("relu_squared", "gelu_new", "gelu_fast", "gelu_quick")
    },
}
