"""What the ops of the corpus compute, in float64 without any rounding: {argument that is written: Exact}.

Codes are given as what their scale multiplies; codes with a given scale in units of codes.
"""

from __future__ import annotations

from typing import Any

import torch

from tests.corpus.numerics import Exact


def _normalised(x: Any, weight: Any, eps: float, bias: float = 0.0) -> Any:
    y = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    return y if weight is None else y * (weight.double() + bias)


# The distance of denormal numbers of a type: what a rounding to it may be off by twice over, however small the number.
_STEP = {torch.float16: 2.0**-24, torch.bfloat16: 2.0**-133, torch.float32: 2.0**-149}


def _between(weight: Any, bias: float, profile: str, dtype: torch.dtype) -> Any:
    """The magnitude of a norm that is rounded before its weight is applied: that rounding of a denormal number."""
    if profile != "hf" or weight is None:
        return None
    return (weight.double() + bias).abs() * (_STEP[dtype] * 2.0**23)


def rms_norm(result: Any, x: Any, weight: Any, eps: float, bias: float, profile: str) -> dict[int, Exact]:
    return {0: Exact(_normalised(x.double(), weight, eps, bias), _between(weight, bias, profile, x.dtype))}


def fused_add_rms_norm(x: Any, r: Any, weight: Any, eps: float, bias: float, profile: str) -> dict[int, Exact]:
    """The stored sum is rounded by definition; the norm is that of the sum as the profile has it."""
    h = x.double() + r.double()
    used = h if profile == "flashinfer" else h.to(x.dtype).double()
    return {0: Exact(_normalised(used, weight, eps, bias), _between(weight, bias, profile, x.dtype)), 1: Exact(h)}


def qk_norm(q: Any, k: Any, wq: Any, wk: Any, eps: float, bias: float, profile: str) -> dict[int, Exact]:
    found = {}
    for i, (t, w) in enumerate(((q, wq), (k, wk))):
        heads = t.double().unflatten(-1, (-1, w.shape[0]))
        size = _between(w, bias, profile, t.dtype)
        size = None if size is None else size.expand(heads.shape).reshape(t.shape)
        found[i] = Exact(_normalised(heads, w, eps, bias).reshape(t.shape), size)
    return found


def layer_norm(result: Any, x: Any, weight: Any, bias: Any, eps: float) -> dict[int, Exact]:
    x = x.double()
    centred = x - x.mean(-1, keepdim=True)
    rstd = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    w = torch.ones_like(x) if weight is None else weight.double()
    b = torch.zeros_like(x) if bias is None else bias.double()
    least = 2.0**-124  # a mean of denormal numbers has no more digits than they have
    # the mean, then each difference: a few units of what is subtracted
    size = 4 * (x.abs() + x.abs().mean(-1, keepdim=True) + least) * rstd * w.abs() + b.abs()
    return {0: Exact(centred * rstd * w + b, size)}


def rms_norm_gated(
    result: Any, x: Any, gate: Any, weight: Any, eps: float, norm_first: bool, activation: str
) -> dict[int, Exact]:
    z = gate.double()
    act = z.sigmoid() if activation == "sigmoid" else z * z.sigmoid()
    if norm_first:
        return {0: Exact(_normalised(x.double(), weight, eps) * act)}
    y = x.double() * act
    rstd = (y.square().mean(-1, keepdim=True) + eps).rsqrt()
    # the product is a float32, which may be denormal
    return {0: Exact(y * rstd * weight.double(), rstd * weight.double() * (2 * _STEP[torch.float32] * 2.0**23))}


def rms_norm_silu(result: Any, x: Any, weight: Any, eps: float) -> dict[int, Exact]:
    y = _normalised(x.double(), weight, eps)
    # y is a few units off, which become |y| times as many in exp(-y); beyond float32 that is infinite, the result zero
    return {0: Exact(y * y.sigmoid(), 4 * y * y * y.sigmoid() + _least(torch.float32))}


def static_fp8(result: Any, x: Any, weight: Any, scale: Any, eps: float, profile: str) -> dict[int, Exact]:
    step = _step_of_codes(weight, x.dtype) / scale.double()
    return {0: Exact(_normalised(x.double(), weight, eps) / scale.double(), slack=step)}


def _step_of_codes(weight: Any, dtype: torch.dtype) -> Any:
    """How far a norm may be off before it is scaled where it is denormal: two roundings, either way."""
    return (1 + weight.double().abs()) * _STEP[dtype]


def add_static_fp8(
    result: Any, x: Any, r: Any, weight: Any, scale: Any, eps: float, profile: str
) -> dict[int, Exact]:
    h = x.double() + r.double()
    used = h if profile == "flashinfer" else h.to(x.dtype).double()
    step = _step_of_codes(weight, x.dtype) / scale.double()
    return {0: Exact(_normalised(used, weight, eps) / scale.double(), slack=step), 2: Exact(h)}


def dynamic_quant(
    result: Any, x: Any, weight: Any, scale: Any, eps: float, bound: Any, residual: Any, *_: Any
) -> dict[int, Exact]:
    """Per token and per block."""
    h = x.double() if residual is None else x.double() + residual.double()
    norm = Exact(_normalised(h, weight, eps), slack=_step_of_codes(weight, x.dtype))
    return {0: norm} | ({} if residual is None else {6: Exact(h)})


def qk_norm_rope(
    qkv: Any, hq: int, hk: int, hv: int, d: int, eps: float, wq: Any, wk: Any, table: Any, neox: bool, positions: Any
) -> dict[int, Exact]:
    heads = qkv.double().unflatten(-1, (-1, d)).clone()
    size = heads.abs().clone()
    for part, w in ((slice(0, hq), wq), (slice(hq, hq + hk), wk)):
        y = _normalised(heads[:, part], w, eps)
        heads[:, part], size[:, part] = _turned(y, table, positions, neox, 0, False)
    return {0: Exact(heads.flatten(-2), 4 * size.flatten(-2))}  # the norm is a few units off before it turns


def _turned(x: Any, table: Any, positions: Any, neox: bool, offset: int, inverse: bool) -> tuple[Any, Any]:
    """(heads turned, sizes of what was added) of (tokens, heads, head size)."""
    rot = table.shape[-1]
    cos, sin = table[positions.reshape(-1)].double().unsqueeze(1).chunk(2, dim=-1)
    sin = -sin if inverse else sin
    y, size = x.clone(), x.abs().clone()
    part = x[..., offset : offset + rot]
    a, b = part.chunk(2, dim=-1) if neox else (part[..., ::2], part[..., 1::2])
    turned = a * cos - b * sin, b * cos + a * sin
    added = (a * cos).abs() + (b * sin).abs(), (b * cos).abs() + (a * sin).abs()
    for held, new in ((y, turned), (size, added)):
        held[..., offset : offset + rot] = torch.cat(new, -1) if neox else torch.stack(new, -1).flatten(-2)
    return y, size


def rotary(
    positions: Any, q: Any, k: Any, head: int, table: Any, neox: bool, offset: int, inverse: bool
) -> dict[int, Exact]:
    found = {}
    for i, t in ((1, q), (2, k)):
        value, size = _turned(t.double().unflatten(-1, (-1, head)), table, positions, neox, offset, inverse)
        found[i] = Exact(value.flatten(-2), size.flatten(-2))
    return found


def rotary_fp8(
    qo: Any, ko: Any, positions: Any, q: Any, k: Any, head: int, table: Any, neox: bool, q_scale: float, k_scale: float,
    offset: int, inverse: bool,
) -> dict[int, Exact]:  # fmt: skip
    found = rotary(positions, q, k, head, table, neox, offset, inverse)
    return {0: Exact(found[1].value * q_scale), 1: Exact(found[2].value * k_scale)}


def rope_quantize(
    q: Any, k: Any, q_nope: Any, k_nope: Any, table: Any, positions: Any, neox: bool, q_scale: float, k_scale: float,
    q_out: Any, k_out: Any, q_nope_out: Any, k_nope_out: Any,
) -> dict[int, Exact]:  # fmt: skip
    found = {}
    for i, (t, scale) in enumerate(((q, q_scale), (k, k_scale), (q_nope, q_scale), (k_nope, k_scale))):
        if t is not None:
            heads = t.double() if t.dim() == 3 else t.double()[:, None]
            value = _turned(heads, table, positions, neox, 0, False)[0] if i < 2 else heads
            found[9 + i] = Exact(value.reshape(t.shape) * scale)
    return found


def _halves(x: Any) -> tuple[Any, Any]:
    d = x.shape[-1] // 2
    return x[..., :d].double(), x[..., d:].double()


def _silu(x: Any) -> Any:
    return x * x.sigmoid()


def _least(dtype: torch.dtype) -> float:
    """What an activation may be off by where it is denormal, or its exponential beyond float32; as a magnitude."""
    return 2.0**23 * (2.0**-24 if dtype == torch.float16 else 3e-37)


def silu_and_mul(result: Any, x: Any, profile: str = "vllm") -> dict[int, Exact]:
    gate, up = _halves(x)
    return {0: Exact(_silu(gate) * up, up * _least(x.dtype))}


def mul_and_silu(result: Any, x: Any, profile: str = "vllm") -> dict[int, Exact]:
    first, second = _halves(x)
    return {0: Exact(first * _silu(second), first * _least(x.dtype))}


def gelu_and_mul(result: Any, x: Any, profile: str = "vllm") -> dict[int, Exact]:
    gate, up = _halves(x)
    y = gate * 0.5 * (1 + (gate * 0.5**0.5).erf()) * up
    return {0: Exact(y, gate * up + up * _least(x.dtype))}  # 1 + erf cancels


def gelu_tanh_and_mul(result: Any, x: Any, profile: str = "vllm") -> dict[int, Exact]:
    gate, up = _halves(x)
    return {0: Exact(_gelu_tanh(gate) * up, gate * up + up * _least(x.dtype))}


def gelu_new(result: Any, x: Any) -> dict[int, Exact]:
    """Also gelu_fast."""
    return {0: Exact(_gelu_tanh(x.double()), x.double())}


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + (0.7978845608028654 * (x + 0.044715 * x * x * x)).tanh())


def fatrelu_and_mul(result: Any, x: Any, threshold: float) -> dict[int, Exact]:
    gate, up = _halves(x)
    return {0: Exact(gate.where(gate > threshold, gate.new_zeros(())) * up)}


def silu_and_mul_with_clamp(result: Any, x: Any, limit: float, alpha: float, beta: float) -> dict[int, Exact]:
    gate, up = _halves(x)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return {0: Exact(gate * (alpha * gate).sigmoid() * (up + beta), up.abs() + _least(x.dtype))}  # up + beta cancels


def swigluoai_and_mul(result: Any, x: Any, alpha: float, limit: float) -> dict[int, Exact]:
    gate, up = x[..., ::2].double().clamp(max=limit), x[..., 1::2].double().clamp(-limit, limit)
    return {0: Exact((up + 1) * gate * (alpha * gate).sigmoid(), up.abs() + _least(x.dtype))}  # up + 1 cancels


def silu_and_mul_quant(result: Any, x: Any, scale: Any) -> dict[int, Exact]:
    step = (1 + _halves(x)[1].abs()) * _STEP[x.dtype]  # a denormal silu, and a denormal product
    return {0: Exact(silu_and_mul(result, x)[0].value / scale.double(), slack=step / scale.double())}


def silu_and_mul_per_block_quant(result: Any, x: Any, *_: Any) -> dict[int, Exact]:
    return silu_and_mul(result, x)


def relu_squared(result: Any, x: Any) -> dict[int, Exact]:
    return {0: Exact(x.double().clamp_min(0).square())}


def gelu_quick(result: Any, x: Any) -> dict[int, Exact]:
    x = x.double()
    least = 2.0**23 * 3e-37  # where the exponential is beyond float32
    y = x * (1.702 * x).sigmoid()
    return {0: Exact(y, y * 1.702 * x + least)}  # an error of the exponent's last place becomes so many times as large


def softmax(out: Any, x: Any, temperature: Any) -> dict[int, Exact]:
    x = x.double() if temperature is None else x.double() / temperature.double().unsqueeze(-1)
    y, below = x.softmax(-1), (x - x.amax(-1, keepdim=True)).abs()
    # an error of an exponent's last place is that of the result relatively: of the difference, in the kernel and in
    # the reference, and of the quotient by a temperature; less than 2^-126 is zero
    size = 2 * below + (0 if temperature is None else x.abs() + x.abs().amax(-1, keepdim=True))
    return {0: Exact(y, y * size + 2.0**-102)}


def embedding(out: Any, indices: Any, weight: Any, start: int, end: int) -> dict[int, Exact]:
    held = (indices >= start) & (indices < end)
    rows = weight.double()[(indices - start).where(held, indices.new_zeros(()))]
    return {0: Exact(rows.masked_fill(~held.unsqueeze(-1), 0))}


def input_of(x: int, result: int) -> Any:
    """Codes whose scale is computed: they stand for argument `x` itself. Codes with zero points are not looked at, nor
    int8 codes of rows whose 127 / max |x| is infinite in float32."""

    def exact(*arguments: Any) -> dict[int, Exact]:
        zero = arguments[3] if len(arguments) > 3 else None
        if torch.is_tensor(zero) and zero.dtype == torch.int32:
            return {}
        value = arguments[x].double()
        tiny = value.abs().amax(-1, keepdim=True) < 127 / torch.finfo(torch.float32).max
        int8 = arguments[result].dtype == torch.int8
        return {result: Exact(value, slack=tiny.double().expand_as(value) if int8 else None)}

    return exact


def static_codes(result: Any, x: Any, scale: Any, more: Any) -> dict[int, Exact]:
    """Codes with one given scale, and perhaps a zero point, in their own units."""
    if scale.numel() != 1 or result.dtype == torch.float8_e5m2:
        return {}
    zero = more.double() if torch.is_tensor(more) else 0.0
    return {0: Exact(x.double() / scale.double() + zero)}
