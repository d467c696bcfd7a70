"""Rotary embedding to fp8 of heads in two parts, as engines call it: FlashInfer's name and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.rotary import reference
from porter.corpus.ops.rotary.functions import aligned_elements, power_of_two, rotary_work
from porter.corpus.ops.rows import as_heads, check_dtype
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op

_ACCESSES = 8  # of a thread for the elements of a head that do not turn


@op(
    "rope_quantize_fp8(Tensor q_rope, Tensor k_rope, Tensor? q_nope, Tensor? k_nope, Tensor cos_sin_cache, "
    "Tensor pos_ids, bool is_neox, float quant_scale_q, float quant_scale_kv, Tensor(a!) q_rope_out, "
    "Tensor(b!) k_rope_out, Tensor(c!)? q_nope_out=None, Tensor(d!)? k_nope_out=None) -> ()",
    key=compact_key("q_rope.nbytes", {"q_nope is None": False, "is_neox": True}),
    fallback=reference.rope_quantize_fp8,
)
def rope_quantize_fp8(
    device: Device, q_rope: Any, k_rope: Any, q_nope: Any, k_nope: Any, cos_sin_cache: Any, pos_ids: Any, is_neox: bool,
    quant_scale_q: float, quant_scale_kv: float, q_rope_out: Any, k_rope_out: Any, q_nope_out: Any, k_nope_out: Any,
) -> Plan:  # fmt: skip
    """float8_e4m3fn results: `q_rope` and `k_rope` turned, `q_nope` and `k_nope` as they are, times the scales.

    `q_rope` (T, q_heads, D) and `q_nope` (T, q_heads, E); `k_rope` and `k_nope` likewise with k_heads, or (T, D) and
    (T, E) for one head; the last dimensions contiguous, any other strides; bfloat16, float16 or float32. Both nope
    tensors or neither. `cos_sin_cache` (positions, D): cosines, then sines, of the same dtype or float32; `pos_ids`
    (T,) int64. In float32 up to the one rounding, which saturates and keeps NaN. The results have the shapes of their
    inputs. Raises ValueError for other arguments; positions are not checked.
    """
    from porter.corpus.kernels.rotary.rope_quantize import RopeQuantize
    from porter.corpus.kernels.rotary.rotary_fp8 import RotaryFp8

    rot = cos_sin_cache.shape[-1]
    if len({t is None for t in (q_nope, k_nope, q_nope_out, k_nope_out)}) != 1:
        raise ValueError("q_nope, k_nope and their results are given all or not at all")
    nope = 0 if q_nope is None else q_nope.shape[-1]
    if q_nope is not None and nope == 0:
        raise Unsupported("q_nope and k_nope are given, but heads have no elements without rotation")
    dtype, views = check_dtype("q_rope", q_rope, "bf16", "f16", "f32"), {}
    for name, t, kind, length in (
        ("q_rope", q_rope, dtype, rot), ("k_rope", k_rope, dtype, rot), ("q_nope", q_nope, dtype, nope),
        ("k_nope", k_nope, dtype, nope), ("q_rope_out", q_rope_out, "e4m3", rot),
        ("k_rope_out", k_rope_out, "e4m3", rot), ("q_nope_out", q_nope_out, "e4m3", nope),
        ("k_nope_out", k_nope_out, "e4m3", nope),
    ):  # fmt: skip
        if t is None or (nope == 0 and "nope" in name):
            continue
        check_dtype(name, t, kind)
        views[name] = as_heads(name, t, length)
        like = views[f"{name[0]}_rope"]
        if views[name].shape[:2] != like.shape[:2]:
            raise ValueError(f"{name} has shape {tuple(t.shape)}, {name[0]}_rope {tuple(like.shape)}")
    lanes = max(1, nope * q_rope.element_size() // (16 * _ACCESSES))  # threads of a head, for what does not turn
    pairs = 1 << max(0, (rot // 2 // lanes).bit_length() - 1)
    work = rotary_work(device, pos_ids, views["q_rope"], views["k_rope"], rot, cos_sin_cache, is_neox, 0, False, pairs)
    if work is None:
        return None
    outs = [views["q_rope_out"], views["k_rope_out"]]
    choices = {**work.choices, "qo_stride": outs[0].stride(1), "ko_stride": outs[1].stride(1),
               "out_align": aligned_elements(outs, (rot // 2,))}  # fmt: skip
    direct = (
        bool(nope)
        and all(t.dim() == 3 for t in (q_rope, q_nope, q_rope_out, q_nope_out))
        and all(t.dim() == 2 for t in (k_rope, k_nope, k_rope_out, k_nope_out))
    )
    if nope:
        parts, results = ([views[f"{n}_nope{end}"] for n in "qk"] for end in ("", "_out"))
        wide = min(16 // q_rope.element_size(), aligned_elements(parts, (nope,)))
        kernel: Any = RopeQuantize(
            **choices, nope=nope, rest=wide, nope_align=wide * q_rope.element_size(),
            nope_out_align=aligned_elements(results, (nope,)), qn_stride=parts[0].stride(1),
            kn_stride=parts[1].stride(1), qno_stride=results[0].stride(1), kno_stride=results[1].stride(1),
            one_key=direct,
        )  # fmt: skip
    else:
        kernel = RotaryFp8(**choices, rest=power_of_two(8, (rot,)))
    blocks = kernel.blocks(work.tokens)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda q, k, qn, kn, table, positions, neox, q_scale, k_scale, q_out, k_out, qn_out, kn_out: launch(
                q_out, k_out, positions, q, k, table, qn_out, kn_out, qn, kn, q_scale, k_scale, blocks
            )

        def call(
            q: Any, k: Any, qn: Any, kn: Any, table: Any, positions: Any, neox: bool, q_scale: float, k_scale: float,
            q_out: Any, k_out: Any, qn_out: Any, kn_out: Any,
        ) -> None:  # fmt: skip
            turn = (as_heads("q", q_out, rot), as_heads("k", k_out, rot), positions,
                    as_heads("q", q, rot), as_heads("k", k, rot), table)  # fmt: skip
            others = [as_heads("nope", t, nope) for t in (qn_out, kn_out, qn, kn)] if nope else []
            launch(*turn, *others, q_scale, k_scale, blocks)

        return call

    return kernel, bind
