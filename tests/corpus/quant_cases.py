"""How the quantising ops of the corpus are tried: arguments, outputs, lengths of rows. All are equal to the bit."""

from __future__ import annotations

from typing import Any

import torch

from tests.corpus import float64
from tests.corpus.inputs import CODES, E4M3, Inputs
from tests.corpus.norm_cases import HIDDEN
from tests.corpus.numerics import Op, Output

E5M2 = torch.float8_e5m2
GROUPED = (128, 256, 640, 1536, 2048, 2944, 4096, 7168, 16384)
EPS = 1e-10


def _x(new: Inputs, tokens: int, hidden: int, variant: str) -> Any:
    return new(tokens, hidden, pad=16 if "strided" in variant else 1 if "odd" in variant else 0)


def _shape_of_scales(tokens: int, hidden: int, variant: str) -> tuple[tuple[int, ...], Any]:
    """(shape, group_shape) of given scales."""
    down = 3 if tokens % 3 == 0 else 1
    across = next(n for n in (128, 96, 4, 1) if hidden % n == 0)
    return {
        "columns": ((hidden,), (-1, 1)), "rows": ((tokens,), (1, -1)),
        "blocks": ((max(1, tokens // down), hidden // across), None),
        "row groups": ((tokens, hidden // across), (1, across)),
    }.get(variant, ((1,), None))  # fmt: skip


def static_fp8(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    shape, group_shape = _shape_of_scales(tokens, hidden, variant)
    scale = new(*shape, dtype=torch.float32, kind="normal").abs() + 0.01
    out = new.out(tokens, hidden, dtype=E5M2 if variant == "e5m2" else E4M3)
    return out, _x(new, tokens, hidden, variant), scale, group_shape


def per_tensor(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    out, scale = new.out(tokens, hidden, dtype=E4M3), new.out(1, dtype=torch.float32)
    return out, _x(new, tokens, hidden, variant), scale


def per_token(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    out, scale = new.out(tokens, hidden, dtype=E4M3), new.out(tokens, 1, dtype=torch.float32)
    return out, _x(new, tokens, hidden, variant), scale, new.number(1.5) if variant == "bounded" else None


def static_int8(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    zero = new.whole(-40, 40, 1, dtype=torch.int32) if variant == "azp" else None
    return new.out(tokens, hidden, dtype=torch.int8), _x(new, tokens, hidden, variant), new.number(0.021), zero


def dynamic_int8(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    out, scale = new.out(tokens, hidden, dtype=torch.int8), new.out(tokens, 1, dtype=torch.float32)
    zero = new.out(tokens, 1, dtype=torch.int32) if variant == "azp" else None
    return out, _x(new, tokens, hidden, variant), scale, zero


def group(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    size, int8 = 64 if "64" in variant else 128, "int8" in variant
    out = new.out(tokens, hidden, dtype=CODES[int8])
    scale = new.out(tokens, hidden // size, dtype=torch.float32)
    x = _x(new, tokens, hidden, variant)
    if int8:
        return x, out, scale, size, EPS, -128.0, 127.0
    return x, out, scale, size, EPS, -448.0, 448.0, "power" in variant


def packed(new: Inputs, tokens: int, hidden: int, variant: str) -> tuple[Any, ...]:
    size = 64 if "64" in variant else 128
    words, rows = -(-hidden // (4 * size)), -(-tokens // 4) * 4
    scale = new.out(words, rows, dtype=torch.int32).t()[:tokens]
    return _x(new, tokens, hidden, variant), new.out(tokens, hidden, dtype=E4M3), scale, size, EPS, -448.0, 448.0


_BITS: dict[str, Any] = {"units": (0, 0), "equal": 1.0}
QUANT = (
    Op("static_scaled_fp8_quant", static_fp8, HIDDEN, (Output(0, "codes"),), float64.static_codes,
       variants=("plain", "e5m2", "columns", "rows", "blocks", "row groups", "strided", "odd"), **_BITS),
    Op("dynamic_scaled_fp8_quant", per_tensor, HIDDEN, (Output(0, "codes", 2), Output(2)), float64.input_of(1, 0),
       variants=("plain", "strided", "odd"), **_BITS),
    Op("dynamic_per_token_scaled_fp8_quant", per_token, HIDDEN, (Output(0, "codes", 2), Output(2)),
       float64.input_of(1, 0), variants=("plain", "bounded", "strided", "odd"), **_BITS),
    Op("static_scaled_int8_quant", static_int8, HIDDEN, (Output(0, "codes"),), float64.static_codes,
       variants=("plain", "azp", "strided", "odd"), **_BITS),
    Op("dynamic_scaled_int8_quant", dynamic_int8, HIDDEN, (Output(0, "codes", 2), Output(2), Output(3)),
       float64.input_of(1, 0), variants=("plain", "azp", "strided", "odd"), **_BITS),
    Op("per_token_group_fp8_quant", group, GROUPED, (Output(1, "codes", 2), Output(2)), float64.input_of(0, 1),
       variants=("plain", "64", "power", "64 power", "strided", "odd"), **_BITS),
    Op("per_token_group_quant_int8", lambda new, t, h, v: group(new, t, h, f"int8 {v}"), GROUPED,
       (Output(1, "codes", 2), Output(2)), variants=("plain", "64", "strided"), **_BITS),
    Op("per_token_group_fp8_quant_packed", packed, GROUPED, (Output(1, "codes"), Output(2)),
       variants=("plain", "64", "strided", "odd"), **_BITS),
)  # fmt: skip
