"""Rows of tokens moved to experts and back as engines call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.moe import layout_reference as reference
from porter.corpus.ops.moe.operands import check_ids, check_int32, check_integers, spread_sort
from porter.corpus.ops.rows import access_width, check_dtype, row_dimensions
from porter.corpus.ops.spread import spread_elements
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, op

FLOATS = ("bf16", "f16", "f32")
PAYLOADS = (*FLOATS, "e4m3", "e5m2", "u8", "i8")
_MOST_CHOICES = 32  # of a token
_COPIERS = (224, 256, 192, 160, 128)  # threads of a block that copies, preferred first where several waste the same
_ONE_LAUNCH = 2048  # entries that every block may sort for itself


def check_rows(name: str, t: Any, width: int | None = None) -> None:
    """Raise ValueError unless t is a matrix of contiguous rows (of `width`)."""
    if t.dim() != 2 or (t.shape[1] > 1 and t.stride(1) != 1):
        raise ValueError(f"{name} must be (rows, width), the last contiguous, it has shape {tuple(t.shape)}")
    if width is not None and t.shape[1] != width:
        raise ValueError(f"{name} has rows of {t.shape[1]}, not of {width}")


@op(
    "shuffle_rows(Tensor input_tensor, Tensor dst2src_map, Tensor(a!) output_tensor) -> ()",
    key="(output_tensor.nbytes, input_tensor.nbytes)",
    fallback=reference.shuffle_rows,
)
def shuffle_rows(device: Device, input_tensor: Any, dst2src_map: Any, output_tensor: Any) -> Plan:
    """`output_tensor[i]` = input_tensor[dst2src_map[i]]; rows whose source is no row of it stay as they are.

    Matrices of one dtype, floats or bytes, rows of one length and contiguous; `dst2src_map` int32 or int64. Raises
    ValueError for other arguments.
    """
    from porter.corpus.kernels.moe.move import GatherRows

    dtype = check_dtype("input_tensor", input_tensor, *PAYLOADS)
    check_dtype("output_tensor", output_tensor, dtype)
    check_rows("input_tensor", input_tensor)
    width = input_tensor.shape[1]
    check_rows("output_tensor", output_tensor, width)
    index = check_integers("dst2src_map", dst2src_map, ("i32", "i64"), output_tensor.shape[0])
    rows = output_tensor.shape[0]
    if rows == 0 or width == 0 or input_tensor.shape[0] == 0:
        return None
    vec = access_width(width, [input_tensor, output_tensor])
    if vec * input_tensor.element_size() < 2:
        raise Unsupported("rows of single bytes")
    spread = spread_elements(device, "shuffle_rows", dtype, rows, width, vec)
    kernel = GatherRows(dtype, index, width, vec, spread.threads, spread.rows, device.pdl)
    blocks = kernel.blocks(rows)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        return lambda x, index, out: launch(out, x, index.view(-1), blocks)

    return kernel, bind


@op(
    "moe_permute(Tensor input, Tensor topk_ids, Tensor token_expert_indices, Tensor? expert_map, int n_expert, "
    "int n_local_expert, int topk, Tensor(a!) permuted_input, Tensor(b!) expert_first_token_offset, "
    "Tensor(c!) inv_permuted_idx, Tensor(d!) permuted_idx) -> ()",
    key="(input.nbytes, topk_ids.nbytes, n_expert, n_local_expert, topk, expert_map is None)",
    fallback=reference.moe_permute,
)  # fmt: skip
def moe_permute(
    device: Device, input: Any, topk_ids: Any, token_expert_indices: Any, expert_map: Any, n_expert: int,
    n_local_expert: int, topk: int, permuted_input: Any, expert_first_token_offset: Any, inv_permuted_idx: Any,
    permuted_idx: Any,
) -> Plan:  # fmt: skip
    """Rows of `input` (T, H) copied to their experts, sorted by expert; an expert's entries keep their order.

    Entry i of `topk_ids` (T, k) stands for entry s = `token_expert_indices`[i] (int32, a permutation of 0 to T * k - 1,
    usually these in order), row s // topk of `input`. `expert_first_token_offset` (n_local_expert + 1,) int64;
    `inv_permuted_idx`, int32, T * k: the place of each entry; `permuted_idx`, int32: the entry at each place, T * k
    past the last; `permuted_input` (rows, H): rows past the last local one are not written. Entries of experts that
    `expert_map` (n_expert,) int32 has no local number for, or whose id is none, have places at the end, in their order
    (vLLM: in the order of their experts). H of floats or bytes. Raises ValueError for other arguments.
    """
    index, entries = check_ids(topk_ids)
    check_int32("token_expert_indices", token_expert_indices, entries)
    check_int32("inv_permuted_idx", inv_permuted_idx, entries)
    check_int32("permuted_idx", permuted_idx)
    check_integers("expert_first_token_offset", expert_first_token_offset, ("i64",), n_local_expert + 1)
    if expert_map is not None:
        check_int32("expert_map", expert_map, n_expert)
    if n_expert < 1 or not 0 <= n_local_expert <= n_expert:
        raise ValueError(f"{n_local_expert} of {n_expert} experts cannot be here")
    dtype = check_dtype("input", input, *PAYLOADS)
    check_dtype("permuted_input", permuted_input, dtype)
    check_rows("input", input)
    check_rows("permuted_input", permuted_input, input.shape[1])
    if topk < 1 or entries != input.shape[0] * topk:
        raise ValueError(f"topk_ids holds {entries} ids, {input.shape[0]} tokens have {topk} each")
    plan = dispatch_plan(
        device, "moe_permute", index, input, permuted_input, topk, entries,
        bins=n_local_expert + 1, experts=n_expert, tail=True, offset="i64", order=True, source=True,
        mapped=expert_map is not None,
    )  # fmt: skip
    if plan is None:
        raise Unsupported("rows without elements")
    kernel, blocks = plan

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        def call(x, ids, order, local, n, m, k, out, offsets, inverse, source):  # type: ignore[no-untyped-def]
            launch(
                out, None, offsets, None, inverse.view(-1), source.view(-1), None, x, None, ids.view(-1),
                order.view(-1), None, local, blocks,
            )  # fmt: skip

        return call

    return kernel, bind


def dispatch_plan(
    device: Device, name: str, index: str, x: Any, out: Any, topk: int, entries: int, *, bins: int, experts: int,
    tail: bool = False, multiple: int = 1, start: int = 0, **options: Any,
) -> tuple[Any, int] | None:  # fmt: skip
    """(kernel, blocks) of a dispatch of rows, None where rows have no elements. The rule: one launch while every block
    can sort the entries as quickly as it would wait for another's result, else two."""
    from porter.corpus.kernels.moe.dispatch import Dispatch
    from porter.corpus.runtime.dtypes import name_of
    from porter.corpus.runtime.tuning import choose

    (rows, width), dtype = x.shape, name_of(x.dtype)
    if width == 0:
        return None
    if topk > _MOST_CHOICES:
        raise Unsupported(f"{topk} experts a token")
    vec = access_width(width, [x, out])
    if vec * x.element_size() < 2:
        raise Unsupported("rows of single bytes")
    fits = entries <= _ONE_LAUNCH
    default = {"launches": 1 if fits else 2, "at_once": 4}

    def candidates() -> list[dict[str, int]]:
        return [{"launches": n, "at_once": a} for n in ((1, 2) if fits else (2,)) for a in (1, 2, 4, 8)]

    choice = choose(device, f"{name} copy", f"{dtype}x{vec} {width} {topk} {bins}", rows, default, candidates)
    one = choice["launches"] == 1 and fits
    most = 1 << entries.bit_length()  # one more at least
    sort = spread_sort(
        device, name, entries, bins, alone=one, shared=4 * most if one else 0, experts=experts, tail=tail,
        multiple=multiple, start=start,
    )  # fmt: skip
    copiers = min(_COPIERS, key=lambda threads: -(-width // (vec * threads)) * threads)
    kernel = Dispatch(
        dtype, index, sort=sort, launches=1 if one else 2, d=width, vec=vec, k=topk, most=most if one else 0,
        copiers=0 if one else copiers, pdl=device.pdl, **options,
    )  # fmt: skip
    at_once = min(2, choice["at_once"]) if one else choice["at_once"]
    blocks = max(1, min(rows * kernel.chunks, device.sm_count * at_once))
    return kernel, blocks


@op(
    "moe_unpermute(Tensor permuted_hidden_states, Tensor topk_weights, Tensor inv_permuted_idx, "
    "Tensor? expert_first_token_offset, int topk, Tensor(a!) hidden_states) -> ()",
    key="(hidden_states.nbytes, topk, expert_first_token_offset is None)",
    fallback=reference.moe_unpermute,
)  # fmt: skip
def moe_unpermute(
    device: Device, permuted_hidden_states: Any, topk_weights: Any, inv_permuted_idx: Any,
    expert_first_token_offset: Any, topk: int, hidden_states: Any,
) -> Plan:  # fmt: skip
    """`hidden_states[t]` = sum over j of topk_weights[t, j] * permuted_hidden_states[inv_permuted_idx[t, j]].

    In float32, in the order of j, an fma each, rounded once; no need to clear the output. Choices whose row is
    negative, or not below the last number of `expert_first_token_offset` (int64) or the number of rows, do not count.
    `topk_weights` (T, topk) float32; `inv_permuted_idx` int32, T * topk; hidden states bfloat16, float16 or float32.
    Raises ValueError for other arguments.
    """
    dtype = check_dtype("hidden_states", hidden_states, *FLOATS)
    check_dtype("permuted_hidden_states", permuted_hidden_states, dtype)
    check_rows("hidden_states", hidden_states)
    rows, width = hidden_states.shape
    check_rows("permuted_hidden_states", permuted_hidden_states, width)
    check_dtype("topk_weights", topk_weights, "f32")
    check_rows("topk_weights", topk_weights, topk)
    check_int32("inv_permuted_idx", inv_permuted_idx, rows * topk)
    if topk_weights.shape[0] != rows:
        raise ValueError(f"topk_weights has {topk_weights.shape[0]} rows, hidden_states {rows}")
    if expert_first_token_offset is not None:
        check_integers("expert_first_token_offset", expert_first_token_offset, ("i64",), least=1)
    if rows == 0 or width == 0:
        return None
    if permuted_hidden_states.shape[0] == 0:
        raise Unsupported("there are no rows to add")
    kernel = combine_kernel(
        device, "moe_unpermute", dtype, rows, width, topk, [permuted_hidden_states, hidden_states],
        indexed=True, weighted=True, bounded=expert_first_token_offset is not None,
    )  # fmt: skip
    blocks = kernel.blocks(rows)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        return lambda x, w, index, valid, k, out: launch(
            out, x, index.view(-1, k), w, None if valid is None else valid.view(-1), None, None, None, blocks
        )

    return kernel, bind


@op(
    "moe_sum(Tensor input, Tensor(a!) output, Tensor? topk_ids=None, Tensor? expert_map=None) -> ()",
    key="(output.nbytes, input.nbytes) if topk_ids is None else (output.nbytes, input.nbytes, expert_map is None)",
    fallback=reference.moe_sum,
)  # fmt: skip
def moe_sum(device: Device, input: Any, output: Any, topk_ids: Any, expert_map: Any) -> Plan:
    """`output` (T, H) = sum over j of input[:, j] (T, k, H), in float32, in the order of j, rounded once.

    With `topk_ids` (T, k), int32 or int64, rows whose id is negative do not count, with `expert_map` (E,) int32 nor do
    those whose expert it maps to a negative number or does not have. bfloat16, float16 or float32. SGLang's
    `moe_sum_reduce(input, output, routed_scaling_factor)` with factor 1 is this. Raises ValueError for other arguments.
    """
    dtype = check_dtype("input", input, *FLOATS)
    check_dtype("output", output, dtype)
    if input.dim() != 3 or (input.shape[2] > 1 and input.stride(2) != 1):
        raise ValueError(f"input must be (T, k, H), the last contiguous, it has shape {tuple(input.shape)}")
    rows, k, width = input.shape
    check_rows("output", output, width)
    if output.shape[0] != rows:
        raise ValueError(f"output has {output.shape[0]} rows, input {rows}")
    ids = ""
    if topk_ids is not None:
        ids = check_dtype("topk_ids", topk_ids, "i32", "i64")
        check_rows("topk_ids", topk_ids, k)
        row_dimensions([("topk_ids", topk_ids)])
    if expert_map is not None:
        if topk_ids is None:
            raise ValueError("expert_map goes with topk_ids")
        check_int32("expert_map", expert_map, least=1)
    if rows == 0 or width == 0:
        return None
    if k == 0:
        raise Unsupported("there are no rows to add")
    kernel = combine_kernel(
        device, "moe_sum", dtype, rows, width, k, [input, output], ids=ids, mapped=expert_map is not None
    )  # fmt: skip
    blocks = kernel.blocks(rows)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        return lambda x, out, ids, local: launch(out, x, None, None, None, ids, local, None, blocks)

    return kernel, bind


def combine_kernel(
    device: Device, name: str, dtype: str, rows: int, width: int, k: int, tensors: list[Any], **options: Any
) -> Any:  # fmt: skip
    """The kernel that adds k rows a token, spread by the tuning table or the rule of element-wise work."""
    from porter.corpus.kernels.moe.combine import Combine

    if k > _MOST_CHOICES:
        raise Unsupported(f"{k} rows a token")
    vec = access_width(width, tensors)
    spread = spread_elements(device, name, dtype, rows, width, vec)
    return Combine(dtype, width, vec, spread.threads, k, 1, pdl=device.pdl, **options)
