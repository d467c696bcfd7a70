"""fp8 and int8 codes with a scale for every 64 or 128 elements of a row: vLLM's names and schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.quant import per_token_group_reference as reference
from porter.corpus.ops.quant.operands import FLOATS, element_accesses, input_and_codes
from porter.corpus.ops.rows import as_rows, check_dtype, row_dimensions
from porter.corpus.ops.spread import spread_elements
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op

_LEAST_SCALE, _LEAST_HIGH = 2.0**-100, 8.0  # what the kernel divides by, and scales stay below 2^125


@op(
    "per_token_group_fp8_quant(Tensor input, Tensor(a!) output_q, Tensor(b!) output_s, int group_size, float eps, "
    "float fp8_min, float fp8_max, bool scale_ue8m0, bool dummy_is_scale_transposed=False, "
    "bool dummy_is_tma_aligned=False) -> ()",
    key=compact_key("input.nbytes", {"group_size": 128, "scale_ue8m0": False, "eps": 1e-10, "fp8_max": 448.0}),
    fallback=reference.per_token_group_fp8_quant,
)
def per_token_group_fp8_quant(
    device: Device, input: Any, output_q: Any, output_s: Any, group_size: int, eps: float, fp8_min: float,
    fp8_max: float, scale_ue8m0: bool, dummy_is_scale_transposed: bool, dummy_is_tma_aligned: bool,
) -> Plan:  # fmt: skip
    """`output_s` = max(max |group|, eps) / fp8_max for every `group_size` (64 or 128) elements of a row, `output_q`
    (..., H) e4m3 = min(max(group / scale, fp8_min), fp8_max), quotients rounded to nearest first.

    With `scale_ue8m0` the scale is the least power of two that is not below max(scale, 1e-10), as a float32. `input`
    (..., H) in bfloat16, float16 or float32, last dimension contiguous. `output_s` (T, H / group_size) float32, whose
    strides say how it lies in memory: rows next to each other (S, 1), or columns (1, S) with S >= T, as DeepGEMM takes
    it with S a multiple of 4; memory beyond T stays as it is. Codes of NaN are fp8_min, and it does not count for the
    scale. The last two arguments are taken for the schema's sake, as in vLLM. SGLang's `sgl_per_token_group_quant_fp8`
    is this without the last two. Raises ValueError for other arguments.
    """
    made = _plan(
        device, "per_token_group_fp8_quant", input, output_q, output_s, group_size, eps, fp8_max, "e4m3", scale_ue8m0
    )
    return _launched_by_rows(made, input.dim() == output_s.dim() == 2)


@op(
    "per_token_group_quant_int8(Tensor input, Tensor(a!) output_q, Tensor(b!) output_s, int group_size, float eps, "
    "float int8_min, float int8_max) -> ()",
    key=compact_key("input.nbytes", {"group_size": 128, "eps": 1e-10, "int8_max": 127.0}),
    fallback=reference.per_token_group_quant_int8,
)
def per_token_group_quant_int8(
    device: Device, input: Any, output_q: Any, output_s: Any, group_size: int, eps: float, int8_min: float,
    int8_max: float,
) -> Plan:  # fmt: skip
    """As per_token_group_fp8_quant with int8 codes, which are rounded towards zero, as engines cast them.

    SGLang's `sgl_per_token_group_quant_int8` has the same arguments.
    """
    made = _plan(
        device, "per_token_group_quant_int8", input, output_q, output_s, group_size, eps, int8_max, "i8", False
    )
    return _launched_by_rows(made, input.dim() == output_s.dim() == 2)


@op(
    "per_token_group_fp8_quant_packed(Tensor input, Tensor(a!) output_q, Tensor(b!) output_s_packed, int group_size, "
    "float eps, float min_8bit, float max_8bit) -> ()",
    key=compact_key("input.nbytes", {"group_size": 128, "eps": 1e-10, "max_8bit": 448.0}),
    fallback=reference.per_token_group_fp8_quant_packed,
)
def per_token_group_fp8_quant_packed(
    device: Device, input: Any, output_q: Any, output_s_packed: Any, group_size: int, eps: float, min_8bit: float,
    max_8bit: float,
) -> Plan:  # fmt: skip
    """As per_token_group_fp8_quant with `scale_ue8m0`, the scales as bytes, exponent plus 127, four in an int32.

    `output_s_packed` (T, ceil(G / 4)) int32 of G = H / group_size groups, strides (1, ceil(T / 4) * 4); byte j of
    column c is group 4c + j, bytes of groups that there are none of are 0, and so are, in every column but the last,
    rows up to the stride. `output_q` may have more rows than `input`: those up to a multiple of 4 become zeros.
    Raises ValueError for other arguments.
    """
    check_dtype("output_s_packed", output_s_packed, "i32")
    dtype = check_dtype("input", input, *FLOATS)
    check_dtype("output_q", output_q, "e4m3")
    length = _group_length(input, group_size)
    rows = _even_rows("input", input)
    written = _even_rows("output_q", output_q)
    if output_q.shape[-1:] != input.shape[-1:] or written < rows:
        raise ValueError(f"output_q has shape {tuple(output_q.shape)}, the input {tuple(input.shape)}")
    words, rounded = -(-(length // group_size) // 4), -(-rows // 4) * 4
    lies = output_s_packed.dim() == 2 and (
        rows == 0
        or ((output_s_packed.stride(0) == 1 or rows == 1) and (output_s_packed.stride(1) == rounded or words == 1))
    )
    if tuple(output_s_packed.shape) != (rows, words) or not lies:
        raise ValueError(
            f"output_s_packed has shape {tuple(output_s_packed.shape)} and strides {output_s_packed.stride()}, the "
            f"kernel writes ({rows}, {words}) with strides (1, {rounded})"
        )
    if rows == 0 or length == 0:
        return None
    _check_range(eps, max_8bit)
    kernel = _kernel(device, "per_token_group_fp8_quant_packed", dtype, rows, input, output_q, group_size, "e4m3",
                     "packed", True)  # fmt: skip
    blocks, direct = kernel.blocks(rounded), input.dim() == output_q.dim() == 2

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda input, output_q, output_s_packed, group_size, eps, min_8bit, max_8bit: launch(
                input, output_q, output_s_packed, eps, min_8bit, max_8bit, blocks
            )
        return lambda input, output_q, output_s_packed, group_size, eps, min_8bit, max_8bit: launch(
            as_rows(input, 1), as_rows(output_q, 1), output_s_packed, eps, min_8bit, max_8bit, blocks
        )

    return kernel, bind


def _launched_by_rows(made: tuple[Any, int] | None, direct: bool) -> Plan:
    """The plan of an op with the arguments of per_token_group_fp8_quant, which the kernel takes as they are if
    `direct`."""
    if made is None:
        return None
    kernel, blocks = made

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda input, output_q, output_s, group_size, eps, low, high, *_: launch(
                input, output_q, output_s, eps, low, high, blocks
            )
        return lambda input, output_q, output_s, group_size, eps, low, high, *_: launch(
            as_rows(input, 1), as_rows(output_q, 1), as_rows(output_s, 1), eps, low, high, blocks
        )

    return kernel, bind


def _plan(
    device: Device, name: str, input: Any, output_q: Any, output_s: Any, group: int, eps: float, high: float,
    codes: str, power: bool,
) -> tuple[Any, int] | None:  # fmt: skip
    check_dtype("output_s", output_s, "f32")
    dtype, _, rows = input_and_codes(input, "output_q", output_q, codes)
    length = _group_length(input, group)
    groups = length // group
    if output_s.shape[-1:] != (groups,) or output_s.numel() != rows * groups:
        raise ValueError(f"output_s has shape {tuple(output_s.shape)}, the kernel writes ({rows}, {groups})")
    if rows == 0 or length == 0:
        return None
    layout = _layout(output_s, rows, groups)
    _check_range(eps, high)
    kernel = _kernel(device, name, dtype, rows, input, output_q, group, codes, layout, power)
    return kernel, kernel.blocks(rows)


def _layout(output_s: Any, rows: int, groups: int) -> str:
    """ "rows" or "columns": what is contiguous in the scales, as the kernel calls it."""
    if output_s.dim() != 2 and not output_s.is_contiguous():
        raise ValueError(f"output_s has shape {tuple(output_s.shape)} and must be contiguous or two-dimensional")
    if output_s.stride(-1) == 1 or groups == 1:
        return "rows"
    if output_s.stride(0) == 1 or rows == 1:
        return "columns"
    raise ValueError(f"output_s has strides {output_s.stride()}: neither its rows nor its columns are contiguous")


def _kernel(
    device: Device, name: str, dtype: str, rows: int, input: Any, output_q: Any, group: int, codes: str, layout: str,
    power: bool,
) -> Any:  # fmt: skip
    from porter.corpus.kernels.quant.per_token_group import PerTokenGroup

    narrow = 16 // input.element_size()
    vecs = (16,) if layout == "packed" else (narrow, 2 * narrow)  # packed: four groups are in one warp
    spread = spread_elements(device, name, dtype, rows, input.shape[-1], vecs[0], vecs)
    return PerTokenGroup(
        dtype, input.shape[-1], spread.vec, spread.threads, spread.rows, group, codes, layout, power,
        *element_accesses(input, output_q), device.pdl, spread.prefetch, spread.streaming, spread.prefetch_blocks,
    )  # fmt: skip


def _group_length(input: Any, group: int) -> int:
    if group not in (64, 128):
        raise ValueError(f"group_size is 64 or 128, not {group}")
    length = input.shape[-1]
    if length % group:
        raise ValueError(f"group_size {group} does not divide the {length} elements of a row of input")
    return length


def _even_rows(name: str, t: Any) -> int:
    rows, inner = row_dimensions([(name, t)])
    if inner != 1:
        raise Unsupported("rows must be at even distances")
    return rows


def _check_range(eps: float, high: float) -> None:
    """Scales that the kernel divides by have these bounds; torch's operators take all others."""
    if not (high >= _LEAST_HIGH and eps / high >= _LEAST_SCALE):
        raise Unsupported(f"eps {eps} and a largest code of {high} give scales out of the kernel's range")
