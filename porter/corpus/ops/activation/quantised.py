"""Gated activations whose output is quantised, as engines call them: vLLM's names and schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.activation import reference
from porter.corpus.ops.activation.functions import FLOATS, halves
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, check_scalar, flat_scalar
from porter.corpus.ops.spread import spread_elements
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, compact_key, op


@op(
    "silu_and_mul_quant(Tensor(a!) result, Tensor input, Tensor scale) -> ()",
    key="input.nbytes",
    fallback=reference.silu_and_mul_quant,
)
def silu_and_mul_quant(device: Device, result: Any, input: Any, scale: Any) -> Plan:
    """`result` (float8_e4m3fn or float8_e5m2) = silu_and_mul(input) * (1 / scale), saturating.

    `scale`: one float32. Three roundings: silu and the product to the dtype of `input`, then the code; equal to the bit
    to `silu_and_mul` and a static quantisation after it. Otherwise as `silu_and_mul`.
    """
    check_scalar("scale", scale)
    plan, direct = _quantised(device, result, input, 0), input.dim() == 2 and scale.dim() == 1
    if plan is None:
        return None
    kernel, blocks = plan

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, scale: launch(result, input, scale, None, blocks)
        return lambda result, input, scale: launch(as_rows(result, 1), as_rows(input, 1), scale.view(1), None, blocks)

    return kernel, bind


@op(
    "silu_and_mul_per_block_quant(Tensor(a!) out, Tensor input, Tensor(b!) scales, int group_size, "
    "Tensor? scale_ub=None, bool is_scale_transposed=False) -> ()",
    key=compact_key("input.nbytes", {"group_size": 128, "scale_ub is None": True, "is_scale_transposed": False}),
    fallback=reference.silu_and_mul_per_block_quant,
)  # fmt: skip
def silu_and_mul_per_block_quant(
    device: Device, out: Any, input: Any, scales: Any, group_size: int, scale_ub: Any, is_scale_transposed: bool
) -> Plan:
    """`out` (float8_e4m3fn or int8) = silu(gate) * up / scale, with a scale for every `group_size` (64 or 128) outputs.

    scale = max(min(absmax / 448, scale_ub), 1 / (448 * 512)), for int8 max(min(absmax / 127, scale_ub), 2^-23), written
    to `scales`: (tokens, groups), or with `is_scale_transposed` (groups, tokens) in memory, given as that shape or as
    its transpose. Products and quotients are float32, rounded once to the codes. Otherwise as `silu_and_mul`.
    """
    if group_size not in (64, 128):
        raise ValueError(f"group_size is 64 or 128, not {group_size}")
    check_dtype("scales", scales, "f32")
    if scale_ub is not None:
        check_scalar("scale_ub", scale_ub)
    plan = _quantised(device, out, input, group_size, is_scale_transposed, scale_ub is not None)
    if plan is None:
        return None
    kernel, blocks = plan
    groups = out.shape[-1] // group_size
    rows, flip = out.numel() // out.shape[-1], False
    shape = tuple(scales.shape)
    if is_scale_transposed:
        flip = shape == (groups, rows) and scales.stride(1) == 1
        if not flip and not (shape == (rows, groups) and (scales.stride(0) == 1 or rows == 1)):
            raise ValueError(f"scales must be ({groups}, {rows}) in memory, they have shape {shape}")
    elif shape[-1:] != (groups,) or scales.numel() != rows * groups or scales.stride(-1) != 1:
        raise ValueError(f"scales must be ({rows}, {groups}), they have shape {shape}")

    direct = input.dim() == scales.dim() == 2 and not flip and (scale_ub is None or scale_ub.dim() == 1)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda out, input, scales, _, upper, __: launch(out, input, scales, upper, blocks)

        def call(out: Any, input: Any, scales: Any, group_size: int, scale_ub: Any, transposed: bool) -> None:
            if flip:
                scales = scales.t()
            launch(as_rows(out, 1), as_rows(input, 1), as_rows(scales, 1), flat_scalar(scale_ub), blocks)

        return call

    return kernel, bind


def _quantised(
    device: Device, out: Any, input: Any, group: int, transposed: bool = False, bounded: bool = False
) -> tuple[Any, int] | None:
    from porter.corpus.kernels.activation.gated_quant import GatedQuant

    dtype = check_dtype("input", input, *FLOATS)
    codes = check_dtype("result", out, "e4m3", *(("i8",) if group else ("e5m2",)))
    rows, d = halves(out, input)
    if rows == 0 or d == 0:
        return None
    size = input.element_size()
    if group and d % group:
        raise ValueError(f"rows of {d} outputs are not whole groups of {group}")
    vec = 16 // size if group else access_width(d, [out, input])
    aligned = access_width(d, [input]) * size, access_width(d, [out])
    name = "silu_and_mul_per_block_quant" if group else "silu_and_mul_quant"
    spread = spread_elements(device, name, dtype, rows, d, vec)
    kernel = GatedQuant(
        dtype, d, vec, spread.threads, spread.rows, group, codes, transposed, bounded, *aligned, device.pdl,
        spread.prefetch, spread.streaming, spread.prefetch_blocks,
    )  # fmt: skip
    return kernel, kernel.blocks(rows)
