"""The norms of the corpus in the emulator, against references that round where the kernels say they do."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.norm import reference
from porter.corpus.runtime import tuning
from tests.corpus.emulated import run
from tests.corpus.numerics import ulps

ARCHS = ("sm_90a", "sm_100a")
EPS = 1e-6


def random(*shape, dtype=torch.bfloat16, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def agree(got, want, exact=0.999, units=1):
    """At most one unit apart, and equal but for a thousandth (sums associate differently).

    Two roundings make two units of one in the first."""
    if got.numel() == 0:
        return
    distance = ulps(got, want)
    assert distance.max() <= (units if got.element_size() == 2 else 4), distance.max()
    if got.element_size() == 2 and got.numel() >= 1000:
        assert (distance == 0).double().mean() >= exact


def exact_rms_norm(x, w, eps=EPS, bias=0.0):
    """In float64, rounded once."""
    x = x.double()
    y = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    return y if w is None else y * (w.double() + bias)


@pytest.mark.parametrize(("tokens", "threads", "rows"), [(5, 64, 2), (3, 32, 4), (9, 96, 1)])
def test_rms_norm_of_several_rows_a_block(tokens, threads, rows):
    """The last block has fewer rows than it has room for."""
    x, w = random(tokens, 1536), random(1536)
    out, want = torch.empty_like(x), torch.empty_like(x)
    with tuning.forced({"threads": threads, "rows": rows}):
        run(corpus.rms_norm, out, x, w, EPS)
    reference.rms_norm(want, x, w, EPS)
    agree(out, want)
    a, r, want_a, want_r = x.clone(), x.clone(), x.clone(), x.clone()
    with tuning.forced({"threads": threads, "rows": rows}):
        run(corpus.fused_add_rms_norm, a, r, w, EPS)
    reference.fused_add_rms_norm(want_a, want_r, w, EPS)
    agree(a, want_a)
    assert torch.equal(r, want_r)


@pytest.mark.parametrize(
    "choice",
    [{"prefetch_distance": 8}, {"prefetch": "rows", "prefetch_blocks": 5}, {"prefetch": "all", "prefetch_blocks": 2}],
)
def test_rms_norm_that_asks_for_rows(choice):
    x, w = random(21, 1536), random(1536)
    out, want = torch.empty_like(x), torch.empty_like(x)
    with tuning.forced({"threads": 64, **choice}):
        run(corpus.rms_norm, out, x, w, EPS)
    reference.rms_norm(want, x, w, EPS)
    agree(out, want)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("shape", [(3, 4096), (5, 769)])
def test_rms_norm(arch, shape):
    x, w, out, want = random(*shape), random(shape[-1]), torch.empty(shape).bfloat16(), torch.empty(shape).bfloat16()
    run(corpus.rms_norm, out, x, w, EPS, arch=arch)
    reference.rms_norm(want, x, w, EPS)
    agree(out, want)
    error = (out.double() - exact_rms_norm(x, w)).abs() / exact_rms_norm(x, w).abs().clamp_min(1e-30)
    assert error.max() < 2**-8


@pytest.mark.parametrize("options", [{"weight_bias": 1.0}, {"profile": "hf"}, {"weight_bias": 1.0, "profile": "hf"}])
def test_rms_norm_options(options):
    x, w, out, want = random(9, 256), random(256), torch.empty(9, 256).bfloat16(), torch.empty(9, 256).bfloat16()
    run(corpus.rms_norm, out, x, w, EPS, **options)
    reference.rms_norm(want, x, w, EPS, **options)
    agree(out, want, units=2 if "profile" in options else 1)


def test_rms_norm_without_weight_in_place():
    x = random(7, 1536, dtype=torch.float16)
    want = torch.empty_like(x)
    reference.rms_norm(want, x, None, EPS)
    run(corpus.rms_norm, x, x, None, EPS)
    agree(x, want)


def test_rms_norm_of_heads_of_packed_qkv():
    packed, w = random(5, 12 * 128), random(128)
    q = packed[:, : 8 * 128].view(5, 8, 128)
    before, want = packed.clone(), torch.empty(5, 8, 128).bfloat16()
    reference.rms_norm(want, q, w, EPS)
    run(corpus.rms_norm, q, q, w, EPS)
    agree(q, want)
    assert torch.equal(packed[:, 8 * 128 :], before[:, 8 * 128 :])


@pytest.mark.parametrize(
    ("arch", "profile", "shape"),
    [("sm_90a", "vllm", (2, 7168)), ("sm_90a", "flashinfer", (133, 200)), ("sm_90a", "hf", (2, 7168)),
     ("sm_100a", "vllm", (133, 200))],
)  # fmt: skip
def test_fused_add_rms_norm(arch, profile, shape):
    x, r, w = random(*shape), random(*shape, seed=2), random(shape[-1], seed=3)
    want_x, want_r = x.clone(), r.clone()
    reference.fused_add_rms_norm(want_x, want_r, w, EPS, profile=profile)
    run(corpus.fused_add_rms_norm, x, r, w, EPS, profile=profile, arch=arch)
    assert torch.equal(r, want_r)
    agree(x, want_x, units=2 if profile == "hf" else 1)


def test_profiles_differ_where_the_sum_is_rounded():
    x, r, w = random(4, 4096), random(4, 4096, seed=2), random(4096, seed=3)
    results = []
    for profile in ("vllm", "flashinfer"):
        a, b = x.clone(), r.clone()
        run(corpus.fused_add_rms_norm, a, b, w, EPS, profile=profile)
        results.append(a)
    assert 0.001 < (results[0] != results[1]).double().mean() < 0.9


@pytest.mark.parametrize(
    ("arch", "head", "tokens"),
    [("sm_90a", 64, 9), ("sm_90a", 80, 9), ("sm_90a", 96, 1), ("sm_90a", 128, 9),
     ("sm_90a", 192, 1), ("sm_90a", 256, 9), ("sm_100a", 128, 9)],
)  # fmt: skip
def test_qk_norm_of_packed_qkv(arch, head, tokens):
    packed, wq, wk = random(tokens, 14 * head), random(head, seed=2), random(head, seed=3)
    want = packed.clone()
    for t, function in ((packed, run), (want, lambda f, *a, **k: reference.qk_norm(*a))):
        q, k = t[:, : 8 * head], t[:, 8 * head : 11 * head].view(tokens, 3, head)
        function(corpus.qk_norm, q, k, wq, wk, EPS, arch=arch) if t is packed else function(None, q, k, wq, wk, EPS)
    agree(packed, want, exact=0.998)
    assert torch.equal(packed[:, 11 * head :], want[:, 11 * head :])


@pytest.mark.parametrize(
    "choice",
    [{"batch": 4}, {"batch": 1, "prefetch_distance": 3}, {"batch": 2, "prefetch_distance": 2, "prefetch_blocks": 4}],
)
def test_qk_norm_with_several_rows_in_flight(choice):
    q, k = random(600, 8, 128), random(600, 2, 128, seed=4)
    want_q, want_k, wq, wk = q.clone(), k.clone(), random(128, seed=3), random(128, seed=5)
    reference.qk_norm(want_q, want_k, wq, wk, EPS, 1.0)
    with tuning.forced(choice):
        run(corpus.qk_norm, q, k, wq, wk, EPS, 1.0, sms=2)
    agree(q, want_q)
    agree(k, want_k)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("shape", "affine"), [((3, 5120), torch.float32), ((150, 96), torch.bfloat16), ((4, 769), None)]
)
def test_layer_norm(arch, shape, affine):
    if arch != "sm_90a" and affine != torch.float32:
        pytest.skip("one shape is enough there")
    x, out, want = random(*shape) + 3, torch.empty(shape).bfloat16(), torch.empty(shape).bfloat16()
    w, b = (None, None) if affine is None else (random(shape[-1], dtype=affine, seed=s) for s in (2, 3))
    run(corpus.layer_norm, out, x, w, b, EPS, arch=arch)
    reference.layer_norm(want, x, w, b, EPS)
    exact = torch.nn.functional.layer_norm(
        x.double(), (shape[-1],), None if w is None else w.double(), None if b is None else b.double(), EPS
    )
    assert (ulps(out, want) == 0).double().mean() >= 0.995  # sums with the bias cancel
    assert ((out.double() - exact).abs() <= exact.abs() * 2**-8 + 1e-5).all()


@pytest.mark.parametrize(
    ("arch", "activation", "norm_before_gate"),
    [("sm_90a", "silu", True), ("sm_90a", "sigmoid", False), ("sm_100a", "silu", False)],
)
def test_gated(arch, activation, norm_before_gate):
    x, z, w = random(7, 1024), random(7, 1024, seed=2), random(1024, seed=3)
    out, want = torch.empty_like(x), torch.empty_like(x)
    run(corpus.rms_norm_gated, out, x, z, w, EPS, norm_before_gate, activation, arch=arch)
    reference.rms_norm_gated(want, x, z, w, EPS, norm_before_gate, activation)
    agree(out, want, exact=0.998)


def test_silu_of_the_norm():
    x, w, out, want = (
        random(5, 3, 640),
        random(640),
        torch.empty(5, 3, 640).bfloat16(),
        torch.empty(5, 3, 640).bfloat16(),
    )
    run(corpus.rms_norm_silu, out, x, w, EPS)
    reference.rms_norm_silu(want, x, w, EPS)
    agree(out, want, exact=0.998)


@pytest.mark.parametrize(
    ("arch", "head", "rot", "neox", "cache"),
    [("sm_90a", 128, 128, True, torch.bfloat16), ("sm_90a", 128, 64, True, torch.float32),
     ("sm_90a", 64, 64, False, torch.bfloat16), ("sm_90a", 128, 32, False, torch.float32),
     ("sm_90a", 80, 80, True, torch.bfloat16), ("sm_100a", 128, 128, True, torch.bfloat16)],
)  # fmt: skip
def test_qk_norm_rope(arch, head, rot, neox, cache):
    tokens, q, k, v = 9, 6, 2, 2
    qkv, wq, wk = random(tokens, (q + k + v) * head), random(head, seed=2), random(head, seed=3)
    angles = torch.rand(50, rot // 2, generator=torch.Generator().manual_seed(4)) * 6.28
    table = torch.cat([angles.cos(), angles.sin()], -1).to(cache)
    positions = torch.randint(0, 50, (tokens,), generator=torch.Generator().manual_seed(5))
    want = qkv.clone()
    run(corpus.qk_norm_rope, qkv, q, k, v, head, EPS, wq, wk, table, neox, positions, arch=arch)
    reference.qk_norm_rope(want, q, k, v, head, EPS, wq, wk, table, neox, positions)
    differs = (qkv != want).double().mean()
    assert differs <= 0.002  # the references fuse no product
    assert ((qkv.double() - want.double()).abs() <= want.double().abs() * 2**-7 + 2**-9).all()


def test_no_rows_launch_nothing():
    x = random(0, 4096)
    assert run(corpus.rms_norm, x, x, random(4096), EPS) == []


def test_wrong_arguments_are_refused():
    x, w = random(4, 64), random(64)
    with pytest.raises(ValueError, match="weight has shape"):
        run(corpus.rms_norm, x, x, random(32), EPS)
    with pytest.raises(ValueError, match="result has shape"):
        run(corpus.rms_norm, random(4, 32), x, w, EPS)
    with pytest.raises(ValueError, match="last dimension of input"):
        run(corpus.rms_norm, x, random(64, 4).t(), w, EPS)
    with pytest.raises(ValueError, match="profile is one of"):
        run(corpus.rms_norm, x, x, w, EPS, profile="other")
