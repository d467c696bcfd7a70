"""Row kernels as one writes them in Triton, to stand beside the corpus: one program a row."""

import triton
import triton.language as tl


@triton.jit
def _rms_norm(out, x, weight, length, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < length
    values = tl.load(x + row * length + at, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, 0) / length + eps)
    gain = tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * length + at, (values * scale * gain).to(out.dtype.element_ty), mask=mask)


@triton.jit
def _silu_and_mul(out, x, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < half
    gate = tl.load(x + row * 2 * half + at, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * half + half + at, mask=mask, other=0.0).to(tl.float32)
    act = (gate * tl.sigmoid(gate)).to(out.dtype.element_ty).to(tl.float32)
    tl.store(out + row * half + at, (act * up).to(out.dtype.element_ty), mask=mask)


@triton.jit
def _softmax(out, x, length, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < length
    values = tl.load(x + row * length + at, mask=mask, other=float("-inf")).to(tl.float32)
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * length + at, (weights / tl.sum(weights, 0)).to(out.dtype.element_ty), mask=mask)


def _warps(block):
    return min(32, max(4, block // 512))


def rms_norm(out, x, weight, eps):
    block = triton.next_power_of_2(x.shape[-1])
    _rms_norm[(x.shape[0],)](out, x, weight, x.shape[-1], eps, BLOCK=block, num_warps=_warps(block))


def silu_and_mul(out, x):
    half = out.shape[-1]
    block = min(2048, triton.next_power_of_2(half))
    _silu_and_mul[(x.shape[0], triton.cdiv(half, block))](out, x, half, BLOCK=block, num_warps=8)


def softmax(out, x):
    block = triton.next_power_of_2(x.shape[-1])
    _softmax[(x.shape[0],)](out, x, x.shape[-1], BLOCK=block, num_warps=_warps(block))
