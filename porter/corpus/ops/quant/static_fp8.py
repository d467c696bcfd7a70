"""fp8 codes with given scales, and with one scale computed for all numbers: vLLM's names and schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from porter.corpus.ops.quant import static_fp8_reference as reference
from porter.corpus.ops.quant.operands import element_accesses, element_widths, input_and_codes
from porter.corpus.ops.quant.spread import spread_tensor
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, check_scalar
from porter.corpus.ops.spread import spread_elements
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, op


@op(
    "static_scaled_fp8_quant(Tensor(a!) result, Tensor input, Tensor scale, int[]? group_shape=None) -> ()",
    key="input.nbytes if group_shape is None else (input.nbytes, *group_shape)",
    fallback=reference.static_scaled_fp8_quant,
)
def static_scaled_fp8_quant(
    device: Device, result: Any, input: Any, scale: Any, group_shape: Sequence[int] | None
) -> Plan:
    """`result` (..., H) float8_e4m3fn or float8_e5m2 = input * (1 / scale), saturating; NaN becomes the largest code.

    `input` (..., H) in bfloat16, float16 or float32, seen as T rows, last dimension contiguous. `scale` float32: one
    number; or (T / m, H / n), one for m rows and n columns; or one-dimensional, with `group_shape` (m, n) to tell
    columns ((-1, 1)) from rows ((1, -1)); -1 stands for all. FlashInfer's and SGLang's per-tensor quantisation with a
    given scale is this. Raises ValueError for other arguments.
    """
    dtype, codes, rows = input_and_codes(input, "result", result, "e4m3", "e5m2")
    check_dtype("scale", scale, "f32")
    length = input.shape[-1]
    if rows == 0 or length == 0:
        return None
    grid = scale_grid(scale, group_shape, rows, length)
    across = length // grid.shape[1]
    down = "all" if grid.shape[0] == 1 else "each" if grid.shape[0] == rows else "some"
    vec = access_width(length, [input, result])
    wide = across == 1 and vec % 4 == 0 and _wide(grid)
    vecs = element_widths(length, vec)
    spread = spread_elements(device, "static_scaled_fp8_quant", dtype, rows, length, vec, vecs)
    kernel = _kernel()(
        dtype, length, spread.vec, spread.threads, spread.rows, codes, across, down, False, wide,
        *element_accesses(input, result), device.pdl, spread.prefetch, spread.streaming, spread.prefetch_blocks,
    )  # fmt: skip
    blocks = kernel.blocks(rows)
    one, direct = kernel.one, input.dim() == 2 and scale.dim() == 1

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if one and direct:
            return lambda result, input, scale, _: launch(result, input, scale, None, blocks)
        if one:
            return lambda result, input, scale, _: launch(
                as_rows(result, 1), as_rows(input, 1), scale.view(1), None, blocks
            )
        return lambda result, input, scale, shape: launch(
            as_rows(result, 1), as_rows(input, 1), scale_grid(scale, shape, rows, length), None, blocks
        )

    return kernel, bind


def scale_grid(scale: Any, group_shape: Sequence[int] | None, rows: int, length: int) -> Any:
    """The (rows / m, length / n) view of the scales of blocks of m rows and n columns. Raises ValueError for scales
    that are not."""
    if scale.numel() == 1:
        return scale.view(1, 1)
    if group_shape is not None and (len(group_shape) != 2 or any(n < 1 and n != -1 for n in group_shape)):
        raise ValueError(f"group_shape is two numbers, of rows and columns, -1 for all, not {list(group_shape)}")
    if scale.dim() not in (1, 2):
        raise ValueError(f"scale has shape {tuple(scale.shape)}: neither one number nor one or two dimensions")
    if scale.dim() == 1 and group_shape is None:
        raise ValueError("group_shape must say what a one-dimensional scale is of: (-1, 1) columns, (1, -1) rows")
    if group_shape is None:
        down, across = scale.shape
    else:
        m, n = (whole if given == -1 else given for given, whole in zip(group_shape, (rows, length), strict=True))
        if rows % m or length % n:
            raise ValueError(f"group_shape {list(group_shape)} does not divide {rows} rows of {length}")
        down, across = rows // m, length // n
    if down == 0 or across == 0 or rows % down or length % across:
        raise ValueError(f"scale has shape {tuple(scale.shape)}, which does not divide {rows} rows of {length}")
    found = scale
    if scale.dim() == 1:
        if down != 1 and across != 1:
            raise ValueError(f"scale must be ({down}, {across}), it has shape {tuple(scale.shape)}")
        found = scale[None] if down == 1 else scale[:, None]
    if tuple(found.shape) != (down, across):
        raise ValueError(f"scale has shape {tuple(scale.shape)}, group_shape implies ({down}, {across})")
    return found


def _wide(grid: Any) -> bool:
    strided = grid.shape[0] > 1 and grid.stride(0) % 4
    return grid.stride(1) == 1 and grid.data_ptr() % 16 == 0 and not strided


def _kernel() -> Any:
    from porter.corpus.kernels.quant.static import StaticQuant

    return StaticQuant


@op(
    "dynamic_scaled_fp8_quant(Tensor(a!) result, Tensor input, Tensor(b!) scale) -> ()",
    key="input.nbytes",
    fallback=reference.dynamic_scaled_fp8_quant,
)
def dynamic_scaled_fp8_quant(device: Device, result: Any, input: Any, scale: Any) -> Plan:
    """`scale` = max(max |input| / 448, 1 / (448 * 512)), one float32; `result` (..., H) e4m3 = input * (1 / scale).

    `input` as for static_scaled_fp8_quant. NaN does not count for the scale, its code is 448. One launch with a barrier
    of all blocks, or two launches, as the tuning table or a rule says. SGLang's `sgl_per_tensor_quant_fp8` that is not
    static is this without the least scale. Without numbers nothing is written. Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.quant.per_tensor import PerTensor

    dtype, _, rows = input_and_codes(input, "result", result, "e4m3")
    check_scalar("scale", scale)
    length = input.shape[-1]
    if rows == 0 or length == 0:
        return None
    vec = access_width(length, [input, result])
    if rows * (length // vec) >= 1 << 30:
        raise Unsupported("more vectors than 32 bits can count")
    spread = spread_tensor(device, "dynamic_scaled_fp8_quant", dtype, rows, length, vec)
    kernel = PerTensor(
        dtype, length, vec, spread.threads, spread.launches, spread.kept, spread.most,
        *element_accesses(input, result), device.pdl,
    )  # fmt: skip
    blocks, direct = kernel.blocks(rows), input.dim() == 2 and scale.dim() == 1

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, scale: launch(result, input, scale, blocks)
        return lambda result, input, scale: launch(as_rows(result, 1), as_rows(input, 1), scale.view(1), blocks)

    return kernel, bind
