"""Workloads of the operations with block scales: NVFP4, MXFP4, MXFP8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.workload import EPS, HIDDEN, Workload, constant, empty, normal

_WIDTHS = ({"width": 2048}, {"width": 14336})


def _results(tokens: int, device: Any, length: int, group: int, fp8: bool) -> tuple[Any, Any]:
    """Codes, and scales in tiles of 128x4."""
    codes = (length, "float8_e4m3fn") if fp8 else (length // 2, "uint8")
    tiles = -(-tokens // 128) * 128, -(-length // (4 * group)) * 4
    return empty(tokens, codes[0], dtype=codes[1], device=device), empty(*tiles, dtype="uint8", device=device)


def _given(group: int, device: Any) -> tuple[Any, ...]:
    """The tensor's scale, of NVFP4."""
    return (constant(400.0, device),) if group == 16 else ()


def _flags(group: int) -> tuple[bool, bool, str]:
    return True, False, "fast" if group == 16 else "ceil"


def _quantise(group: int, fp8: bool) -> Callable[..., tuple[Any, ...]]:
    def make(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
        codes, scales = _results(tokens, device, hidden, group, fp8)
        x = normal(tokens, hidden, dtype=dtype, device=device)
        return codes, x, scales, *_given(group, device), *_flags(group)

    return make


def _dequantise(group: int, fp8: bool) -> Callable[..., tuple[Any, ...]]:
    def make(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
        codes, scales = _results(tokens, device, hidden, group, fp8)
        if str(device) != "meta":
            codes.view(scales.dtype).fill_(0x53)
            scales.fill_(0x50)
        out = empty(tokens, hidden, dtype=dtype, device=device)
        return out, codes, scales, *_given(group, device), *_flags(group)[:2]

    return make


def _gated(group: int, fp8: bool) -> Callable[..., tuple[Any, ...]]:
    def make(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
        x = normal(tokens, 2 * width, dtype=dtype, device=device)
        return *_results(tokens, device, width, group, fp8), x, *_given(group, device), *_flags(group)

    return make


def _norm(group: int, fp8: bool) -> Callable[..., tuple[Any, ...]]:
    def make(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
        x, w = (normal(*n, hidden, dtype=dtype, device=device) for n in ((tokens,), ()))
        given = _given(group, device)
        return *_results(tokens, device, hidden, group, fp8), x, w, *given, EPS, None, *_flags(group)

    return make


def _tiles(back: bool) -> Callable[..., tuple[Any, ...]]:
    def make(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
        tiles = empty(-(-tokens // 8) * 8, hidden // 16, dtype="uint8", device=device)
        rows = empty(tokens, hidden // 16, dtype="uint8", device=device)
        if str(device) != "meta":
            rows.fill_(0x50)
            tiles.fill_(0x50)
        return *((rows, tiles) if back else (tiles, rows)), True

    return make


def _written(tokens: int, length: int, group: int, fp8: bool) -> int:
    return tokens * (length if fp8 else length // 2) + tokens * length // group


def _rows(make: Any, group: int, fp8: bool) -> Workload:
    def traffic(tokens: int, itemsize: int, hidden: int) -> int:
        return tokens * hidden * itemsize + _written(tokens, hidden, group, fp8)

    return Workload(make(group, fp8), traffic, HIDDEN)


def _halves(group: int, fp8: bool) -> Workload:
    def traffic(tokens: int, itemsize: int, width: int) -> int:
        return 2 * tokens * width * itemsize + _written(tokens, width, group, fp8)

    return Workload(_gated(group, fp8), traffic, _WIDTHS)


def _moved(tokens: int, itemsize: int, hidden: int) -> int:
    return tokens * hidden // 8


BLOCKS: dict[str, Workload] = {
    "scaled_fp4_quant": _rows(_quantise, 16, False),
    "mxfp4_quantize": _rows(_quantise, 32, False),
    "mxfp8_quantize": _rows(_quantise, 32, True),
    "nvfp4_dequantize": _rows(_dequantise, 16, False),
    "mxfp4_dequantize": _rows(_dequantise, 32, False),
    "mxfp8_dequantize": _rows(_dequantise, 32, True),
    "silu_and_mul_nvfp4_quant": _halves(16, False),
    "silu_and_mul_mxfp4_quant": _halves(32, False),
    "silu_and_mul_mxfp8_quant": _halves(32, True),
    "gelu_tanh_and_mul_nvfp4_quant": _halves(16, False),
    "gelu_tanh_and_mul_mxfp8_quant": _halves(32, True),
    "rms_norm_nvfp4_quant": _rows(_norm, 16, False),
    "rms_norm_mxfp8_quant": _rows(_norm, 32, True),
    "block_scale_interleave": Workload(_tiles(False), _moved, HIDDEN, tuned=False),
    "block_scale_deinterleave": Workload(_tiles(True), _moved, HIDDEN, tuned=False),
}
