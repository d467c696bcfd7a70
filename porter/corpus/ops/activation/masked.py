"""The gated activation of batched experts with quantised output: vLLM's name and schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.activation.functions import FLOATS
from porter.corpus.ops.quant.per_token_group_reference import per_token_group_fp8_quant
from porter.corpus.ops.rows import access_width, as_rows, check_dtype
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op
from porter.corpus.runtime.tuning import choose

_GROUP = 128
_THREADS = (256, 128, 64)
_EPS, _MOST = 1e-10, 448.0


def _reference(input: Any, counts: Any, y_q: Any, y_s: Any, use_ue8m0: bool) -> None:
    """With torch's operators, for each expert."""
    d = y_q.shape[-1]
    for x, codes, scales, count in zip(input, y_q, y_s, counts.tolist(), strict=True):
        n = max(0, min(count, x.shape[0]))
        gate, up = x[:n, :d].float(), x[:n, d:].float()
        product = gate * gate.sigmoid() * up
        per_token_group_fp8_quant(product, codes[:n], scales[:n], _GROUP, _EPS, -_MOST, _MOST, use_ue8m0)


@op(
    "persistent_masked_m_silu_mul_quant(Tensor input, Tensor counts, Tensor(a!) y_q, Tensor(b!) y_s, bool use_ue8m0) "
    "-> ()",
    key=compact_key("(input.nbytes, counts.nbytes)", {"use_ue8m0": False}),
    fallback=_reference,
)
def persistent_masked_m_silu_mul_quant(
    device: Device, input: Any, counts: Any, y_q: Any, y_s: Any, use_ue8m0: bool
) -> Plan:
    """`y_q` (E, T, d) float8_e4m3fn = silu(gate) * up / scale of the first `counts[e]` rows of each expert of `input`
    (E, T, 2 d), a scale for every 128 outputs of a row; other rows, and their scales, are neither read nor written.

    The product is float32 and not rounded, then quantised as per_token_group_fp8_quant does with eps 1e-10 (and
    `scale_ue8m0`): to the bit. `counts` (E,) int32, on the device; a count counts as T at most. `y_s` (E, T, d / 128)
    float32, in which tokens (as vLLM and DeepGEMM have it) or groups are neighbours in memory. `input` is bfloat16,
    float16 or float32. The grid is that of all E * T rows: blocks of rows that are none end at once. Raises ValueError
    for other arguments.
    """
    from porter.corpus.kernels.activation.masked_gated_quant import MaskedGatedQuant

    dtype = check_dtype("input", input, *FLOATS)
    check_dtype("y_q", y_q, "e4m3")
    check_dtype("counts", counts, "i32")
    check_dtype("y_s", y_s, "f32")
    if input.dim() != 3 or input.shape[-1] % (2 * _GROUP):
        raise ValueError(f"input must be (experts, tokens, 2 d), d whole groups of 128, not {tuple(input.shape)}")
    experts, places, d = input.shape[0], input.shape[1], input.shape[2] // 2
    wanted = {"counts": (counts, (experts,)), "y_q": (y_q, (experts, places, d))}
    wanted["y_s"] = y_s, (experts, places, d // _GROUP)
    for name, (t, shape) in wanted.items():
        if tuple(t.shape) != shape:
            raise ValueError(f"{name} must have shape {shape}, not {tuple(t.shape)}")
    if experts * places * d == 0:
        return None
    if not counts.is_contiguous():
        raise ValueError(f"counts must be contiguous, it has stride {counts.stride(0)}")
    for name, t in (("input", input), ("y_q", y_q)):
        if t.stride(-1) != 1:
            raise ValueError(f"the last dimension of {name} must be contiguous, it has stride {t.stride(-1)}")
        if experts > 1 and t.stride(0) != places * t.stride(1):
            raise Unsupported(f"{name} has unevenly spaced rows")
    columns = y_s.stride(1) == 1 or places == 1
    if not columns and y_s.stride(2) != 1 and d > _GROUP:
        raise ValueError(f"y_s has strides {y_s.stride()}: neither its tokens nor its groups are contiguous")
    vec, size = 16 // input.element_size(), input.element_size()
    vectors = d // vec
    default = {"threads": min(_THREADS, key=lambda n: (-(-vectors // n) * n, -n))}
    found = choose(
        device, "persistent_masked_m_silu_mul_quant", f"{dtype} {d}", experts * places, default,
        lambda: [{"threads": n} for n in _THREADS],
    )  # fmt: skip
    aligned = access_width(d, [input]) * size, access_width(d, [y_q])
    kernel = MaskedGatedQuant(
        dtype, d, vec, found["threads"], places, _GROUP, columns, use_ue8m0, *aligned, device.pdl
    )  # fmt: skip
    blocks = kernel.blocks(experts * places)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        return lambda input, counts, y_q, y_s, _: launch(as_rows(input, 1), counts, as_rows(y_q, 1), y_s, blocks)

    return kernel, bind
