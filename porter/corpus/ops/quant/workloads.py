"""Workloads of the quantising operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.workload import HIDDEN, Workload, constant, empty, normal

_EPS = 1e-10


def _operands(tokens: int, dtype: Any, device: Any, hidden: int, codes: str = "float8_e4m3fn") -> tuple[Any, Any]:
    return empty(tokens, hidden, dtype=codes, device=device), normal(tokens, hidden, dtype=dtype, device=device)


def _scales(*shape: int, device: Any, dtype: str = "float32") -> Any:
    return empty(*shape, dtype=dtype, device=device)


def _given(codes: str) -> Callable[..., tuple[Any, ...]]:
    def make(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
        return *_operands(tokens, dtype, device, hidden, codes), constant(0.02, device), None

    return make


def _per_tensor(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    return *_operands(tokens, dtype, device, hidden), _scales(1, device=device)


def _per_token(codes: str) -> Callable[..., tuple[Any, ...]]:
    def make(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
        return *_operands(tokens, dtype, device, hidden, codes), _scales(tokens, 1, device=device), None

    return make


def _group(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    codes, x = _operands(tokens, dtype, device, _whole(hidden))
    scales = _scales(tokens, _whole(hidden) // 128, device=device)
    return x, codes, scales, 128, _EPS, -448.0, 448.0, False, False, False


def _group_int8(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    codes, x = _operands(tokens, dtype, device, _whole(hidden), "int8")
    return x, codes, _scales(tokens, _whole(hidden) // 128, device=device), 128, _EPS, -128.0, 127.0


def _group_packed(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    codes, x = _operands(tokens, dtype, device, _whole(hidden))
    words, rows = -(-_whole(hidden) // 512), -(-tokens // 4) * 4
    packed = _scales(words, rows, device=device, dtype="int32").t()[:tokens]
    return x, codes, packed, 128, _EPS, -448.0, 448.0


def _whole(hidden: int) -> int:
    """2880 and the like rounded up to whole groups, as engines pad them."""
    return -(-hidden // 128) * 128


def _once(tokens: int, itemsize: int, hidden: int) -> int:
    return tokens * hidden * (itemsize + 1)


QUANT: dict[str, Workload] = {
    "static_scaled_fp8_quant": Workload(_given("float8_e4m3fn"), _once, HIDDEN),
    "dynamic_scaled_fp8_quant": Workload(_per_tensor, _once, HIDDEN),
    "dynamic_per_token_scaled_fp8_quant": Workload(
        _per_token("float8_e4m3fn"), lambda t, e, hidden: _once(t, e, hidden) + 4 * t, HIDDEN
    ),
    "per_token_group_fp8_quant": Workload(
        _group, lambda t, e, hidden: _once(t, e, _whole(hidden)) + t * _whole(hidden) // 32, HIDDEN
    ),
    "per_token_group_fp8_quant_packed": Workload(
        _group_packed, lambda t, e, hidden: _once(t, e, _whole(hidden)) + t * _whole(hidden) // 128, HIDDEN
    ),
    "static_scaled_int8_quant": Workload(_given("int8"), _once, HIDDEN),
    "dynamic_scaled_int8_quant": Workload(
        _per_token("int8"), lambda t, e, hidden: _once(t, e, hidden) + 4 * t, HIDDEN
    ),
    "per_token_group_quant_int8": Workload(
        _group_int8, lambda t, e, hidden: _once(t, e, _whole(hidden)) + t * _whole(hidden) // 32, HIDDEN
    ),
}  # fmt: skip
