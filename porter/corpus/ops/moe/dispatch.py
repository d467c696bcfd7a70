"""Dispatch of tokens to the experts of this GPU and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.moe import layout_reference as reference
from porter.corpus.ops.moe.operands import check_ids, check_int32, check_integers
from porter.corpus.ops.moe.rows import FLOATS, PAYLOADS, check_rows, combine_kernel, dispatch_plan
from porter.corpus.ops.rows import check_dtype
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, op

SCALES = ("f32", "i32", "u8", "e8m0")


@op(
    "moe_dispatch(Tensor(a!) output, Tensor(b!) expert_offsets, Tensor(c!) inverse, Tensor input, Tensor topk_ids, "
    "int num_experts, int first_expert=0, int padding=1, Tensor? expert_map=None, Tensor(d!)? output_scale=None, "
    "Tensor? input_scale=None, Tensor(e!)? expert_num_tokens=None, Tensor(f!)? source=None, "
    "Tensor(g!)? row_weights=None, Tensor? topk_weights=None) -> ()",
    key="(input.nbytes, topk_ids.nbytes, expert_offsets.nbytes, num_experts, first_expert, padding, "
    "expert_map is None, input_scale is None, expert_num_tokens is None, source is None, row_weights is None)",
    fallback=reference.moe_dispatch,
)  # fmt: skip
def moe_dispatch(
    device: Device, output: Any, expert_offsets: Any, inverse: Any, input: Any, topk_ids: Any, num_experts: int,
    first_expert: int, padding: int, expert_map: Any, output_scale: Any, input_scale: Any, expert_num_tokens: Any,
    source: Any, row_weights: Any, topk_weights: Any,
) -> Plan:  # fmt: skip
    """Rows of `input` (T, H) copied to those of its experts that are here, sorted by expert, with all that GEMMs need.

    Experts first_expert to first_expert + n - 1 of `num_experts` are here, or those that `expert_map` (num_experts,)
    int32 gives numbers below n, where `expert_offsets` (n + 1,), int32 or int64, are the first rows of each: each
    starts at a multiple of `padding`, and entries of an expert keep their order. `inverse` (T, k) int32: the row of
    each entry of `topk_ids`, -1 for those that are not here. Rows of `output` (R, H) without an entry are not written;
    entries whose row is not below R are not copied. Rows are floats or bytes, 8-bit codes with `input_scale` (T, S) and
    `output_scale` (R, S), float32, int32 or bytes, say. Optional: `expert_num_tokens` (n,) int32; `source` int32, the
    entry of each row, T * k for none; `row_weights` float32, the weight of each row from `topk_weights` (T, k), 0 for
    none. One launch while every block can sort the entries by itself, else two. Raises ValueError for other arguments.
    """
    index, entries = check_ids(topk_ids)
    dtype = check_dtype("input", input, *PAYLOADS)
    check_dtype("output", output, dtype)
    check_rows("input", input)
    check_rows("output", output, input.shape[1])
    offset = check_integers("expert_offsets", expert_offsets, ("i32", "i64"), least=2)
    here, rows = expert_offsets.numel() - 1, input.shape[0]
    if topk_ids.dim() != 2 or topk_ids.shape[0] != rows or topk_ids.shape[1] < 1:
        raise ValueError(f"topk_ids has shape {tuple(topk_ids.shape)}, there are {rows} tokens")
    check_int32("inverse", inverse, entries)
    if first_expert < 0 or padding < 1 or (expert_map is None and first_expert + here > num_experts):
        raise ValueError(f"experts {first_expert} to {first_expert + here - 1}, padded to {padding}, of {num_experts}")
    if entries + here * (padding - 1) >= 1 << 31:
        raise ValueError(f"{entries} entries, padded, have rows past 2^31")
    if expert_map is not None:
        check_int32("expert_map", expert_map, num_experts)
        if first_expert:
            raise ValueError("expert_map says which experts are here: first_expert must be 0")
    options: dict[str, Any] = {}
    if (input_scale is None) != (output_scale is None):
        raise ValueError("input_scale and output_scale go together")
    if input_scale is not None:
        options["scale"] = check_dtype("input_scale", input_scale, *SCALES)
        check_dtype("output_scale", output_scale, options["scale"])
        check_rows("input_scale", input_scale)
        options["scales"] = input_scale.shape[1]
        check_rows("output_scale", output_scale, input_scale.shape[1])
        if input_scale.shape[0] != rows or output_scale.shape[0] != output.shape[0] or not input_scale.shape[1]:
            raise ValueError(f"scales have shape {tuple(input_scale.shape)} and {tuple(output_scale.shape)}")
    if expert_num_tokens is not None:
        check_int32("expert_num_tokens", expert_num_tokens, here)
    if source is not None:
        check_int32("source", source)
    if (row_weights is None) != (topk_weights is None):
        raise ValueError("row_weights and topk_weights go together")
    if row_weights is not None:
        check_integers("row_weights", row_weights, ("f32",), None if source is None else source.numel())
        check_integers("topk_weights", topk_weights, ("f32",), entries)
    plan = dispatch_plan(
        device, "moe_dispatch", index, input, output, topk_ids.shape[1], entries,
        bins=here, experts=num_experts, multiple=padding, start=first_expert, offset=offset,
        counts=expert_num_tokens is not None, source=source is not None, weights=row_weights is not None,
        mapped=expert_map is not None, **options,
    )  # fmt: skip
    if plan is None:
        raise Unsupported("rows without elements")
    kernel, blocks = plan

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        def call(out, offsets, inverse, x, ids, n, f, p, local, out_s, x_s, counts, source, row_w, w):  # type: ignore[no-untyped-def]
            launch(
                out, out_s, offsets, counts, inverse.view(-1), source, row_w, x, x_s, ids.view(-1), None,
                None if w is None else w.view(-1), local, blocks,
            )  # fmt: skip

        return call

    return kernel, bind


@op(
    "moe_combine(Tensor(a!) output, Tensor input, Tensor inverse, Tensor? topk_weights=None, "
    "Tensor? shared_output=None) -> ()",
    key="(output.nbytes, inverse.nbytes, topk_weights is None, shared_output is None)",
    fallback=reference.moe_combine,
)  # fmt: skip
def moe_combine(
    device: Device, output: Any, input: Any, inverse: Any, topk_weights: Any, shared_output: Any
) -> Plan:  # fmt: skip
    """`output[t]` (T, H) = shared_output[t] + sum over j of topk_weights[t, j] * input[inverse[t, j]].

    The way back from `moe_dispatch`: in float32, in the order of j, rounded once; entries whose row is negative or not
    below the number of rows do not count. Without `topk_weights` (T, k) float32 rows are added as they are, because
    weights are in them already; without `shared_output`, a shared expert's rows, sums start at zero. `inverse` (T, k)
    int32; all rows of one dtype, bfloat16, float16 or float32. Raises ValueError for other arguments.
    """
    dtype = check_dtype("output", output, *FLOATS)
    check_dtype("input", input, dtype)
    check_rows("output", output)
    rows, width = output.shape
    check_rows("input", input, width)
    if inverse.dim() != 2 or inverse.shape[0] != rows or inverse.shape[1] < 1:
        raise ValueError(f"inverse has shape {tuple(inverse.shape)}, there are {rows} tokens")
    k = inverse.shape[1]
    check_int32("inverse", inverse)
    if topk_weights is not None:
        check_dtype("topk_weights", topk_weights, "f32")
        check_rows("topk_weights", topk_weights, k)
        if topk_weights.shape[0] != rows:
            raise ValueError(f"topk_weights has {topk_weights.shape[0]} rows, output {rows}")
    shared = [] if shared_output is None else [shared_output]
    if shared:
        check_dtype("shared_output", shared_output, dtype)
        check_rows("shared_output", shared_output, width)
        if shared_output.shape[0] != rows:
            raise ValueError(f"shared_output has {shared_output.shape[0]} rows, output {rows}")
    if rows == 0 or width == 0:
        return None
    if input.shape[0] == 0:
        raise Unsupported("there are no rows to add")
    kernel = combine_kernel(
        device, "moe_combine", dtype, rows, width, k, [input, output, *shared],
        indexed=True, weighted=topk_weights is not None, base=bool(shared),
    )  # fmt: skip
    blocks = kernel.blocks(rows)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        return lambda out, x, index, w, shared: launch(out, x, index, w, None, None, None, shared, blocks)

    return kernel, bind
