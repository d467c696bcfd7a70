"""Norms as engines call them: out variants with vLLM's names and schemas where it has one, else FlashInfer's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops import norm_reference as reference
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, check_vector, row_dimensions, threads_of_row
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, op

FLOATS = ("bf16", "f16", "f32")
# Where the rounding steps of engines differ; "vllm" is the default everywhere.
ROUNDING = {"vllm": "single", "flashinfer": "single", "hf": "double"}


def rounding(profile: str) -> str:
    if profile not in ROUNDING:
        raise ValueError(f"profile is one of {', '.join(ROUNDING)}, not {profile!r}")
    return ROUNDING[profile]


@op(
    "rms_norm(Tensor(a!) result, Tensor input, Tensor? weight, float epsilon, float weight_bias=0.0, "
    "str profile='vllm') -> ()",
    key=lambda result, input, weight, epsilon, weight_bias=0.0, profile="vllm": (
        input.shape, input.stride(), input.dtype, input.get_device(), weight is None, weight_bias, profile
    ),
    fallback=reference.rms_norm,
)  # fmt: skip
def rms_norm(
    device: Device, result: Any, input: Any, weight: Any, epsilon: float, weight_bias: float, profile: str
) -> Plan:
    """`result` = input / sqrt(mean(input^2) + epsilon) * (weight + weight_bias), over the last dimension.

    `input` (..., H) in bfloat16, float16 or float32 with a contiguous last dimension; `result` like it, or `input`
    itself; `weight` (H,) of the same dtype or float32, or None. Computed in float32; the profile says where it is
    rounded: "vllm" and "flashinfer" once, "hf" before the weight is applied and after. Raises ValueError for other
    arguments.
    """
    from porter.corpus.kernels.norm.rms_norm import RmsNorm
    from porter.corpus.lib.rows import Rows

    dtype = check_dtype("input", input, *FLOATS)
    check_dtype("result", result, dtype)
    rows, inner = row_dimensions([("input", input), ("result", result)])
    length = input.shape[-1]
    if weight is not None:
        check_vector("weight", weight, length)
    if rows == 0 or length == 0:
        return None
    vec = access_width(length, [input, result, weight])
    shape = spread(device, rows, length, vec)
    kernel = RmsNorm(
        dtype, Rows(length, vec, *shape), None if weight is None else check_dtype("weight", weight, dtype, "f32"),
        weight_bias, rounding(profile), inner, device.pdl, prefetch=rows <= device.sm_count,
    )  # fmt: skip
    blocks = -(-rows // shape[1])

    direct = input.dim() == (2 if inner == 1 else 3)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, weight, epsilon, *_: launch(result, input, weight, epsilon, blocks)
        return lambda result, input, weight, epsilon, *_: launch(
            as_rows(result, inner), as_rows(input, inner), weight, epsilon, blocks
        )

    return kernel, bind


def spread(device: Device, rows: int, length: int, vec: int) -> tuple[int, int]:
    """(threads of a row, rows of a block): few rows get many threads each, many rows several accesses a thread."""
    threads = threads_of_row(length, vec, 1 if rows <= device.sm_count else 4)
    if threads > 32:
        return threads, 1
    per_block = 1
    while per_block * threads < 128 and rows > per_block * 2 * device.sm_count:
        per_block *= 2
    return threads, max(per_block, 32 // threads)
