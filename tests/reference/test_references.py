"""The float64 references against formulations that share no code with them: torch operators, loops, known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from porter.verify.numerics.formats import round_to
from porter.verify.numerics.references import Arrays, get
from porter.verify.numerics.references.moe import ordered_choice
from porter.verify.numerics.references.rounding import SLACK

torch = pytest.importorskip("torch")
F = torch.nn.functional

BF16: dict[str, Any] = {"scalar_t": "bf16", "VEC": 8}
F16: dict[str, Any] = {"scalar_t": "f16", "VEC": 8}
INF, NAN = np.inf, np.nan


def bf16(shape: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return round_to(scale * np.random.default_rng(seed).standard_normal(shape), "bf16")


def run(name: str, inputs: Arrays, scalars: dict[str, Any], args: dict[str, Any]) -> dict[str, np.ndarray]:
    return get(name)(inputs, scalars, {}, args)


def t(x: np.ndarray) -> Any:
    return torch.from_numpy(np.ascontiguousarray(x))


def close(a: np.ndarray, b: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(a, b.numpy() if hasattr(b, "numpy") else b, rtol=rtol, atol=0)


# ---------------------------------------------------------------- norms


def test_rms_norm() -> None:
    x, w = bf16((5, 96)), bf16((96,), 1)
    expected = F.rms_norm(t(x), (96,), t(w), 1e-6)
    close(run("rms_norm", {"input": x, "weight": w}, {"epsilon": 1e-6}, BF16)["out"], expected)
    close(run("rms_norm", {"input": x}, {"epsilon": 1e-6}, BF16)["out"], F.rms_norm(t(x), (96,), None, 1e-6))


def test_rms_norm_adds_epsilon_after_the_mean() -> None:
    out = run("rms_norm", {"input": np.full((1, 4), 1e-3)}, {"epsilon": 1e-6}, BF16)["out"]
    close(out, np.full((1, 4), 1e-3 / np.sqrt(2e-6)))


def test_rms_norm_hf_rounds_between_norm_and_weight() -> None:
    x, w = bf16((5, 96)), bf16((96,), 1)
    middle = F.rms_norm(t(x), (96,), None, 1e-6).to(torch.bfloat16).to(torch.float64)
    close(run("rms_norm:hf", {"input": x, "weight": w}, {"epsilon": 1e-6}, BF16)["out"], middle * t(w))


def test_fused_add_rms_norm_in_both_residual_modes() -> None:
    x, r, w = bf16((7, 64)), bf16((7, 64), 1, 100.0), bf16((64,), 2)
    inputs = {"input": x, "residual": r, "weight": w}
    total = t(x) + t(r)
    for name, h in (("vllm", total.to(torch.bfloat16).to(torch.float64)), ("flashinfer", total)):
        found = run(f"fused_add_rms_norm:{name}", inputs, {"epsilon": 1e-6}, BF16)
        close(found["input"], F.rms_norm(h, (64,), t(w), 1e-6))
        close(found["residual"], total)


def test_layer_norm_far_from_zero() -> None:
    x = bf16((4, 128), 3) + 1000.0
    gamma, beta = np.random.default_rng(1).standard_normal((2, 128))
    found = run("layer_norm", {"input": x, "gamma": gamma, "beta": beta}, {"epsilon": 1e-5}, BF16)["out"]
    expected = F.layer_norm(t(x), (128,), t(gamma), t(beta), 1e-5).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_qk_norm_uses_each_operands_own_weight() -> None:
    q, k = bf16((3, 4, 64)), bf16((3, 2, 64), 1)
    qw, kw = bf16((64,), 2), bf16((64,), 3)
    found = run("qk_norm", {"q": q, "k": k, "q_weight": qw, "k_weight": kw}, {"epsilon": 1e-6}, BF16)
    close(found["q"], F.rms_norm(t(q), (64,), t(qw), 1e-6))
    close(found["k"], F.rms_norm(t(k), (64,), t(kw), 1e-6))


# ---------------------------------------------------------------- activations


def test_silu_and_mul() -> None:
    x = bf16((6, 40), 4, 3.0)
    gate, up = t(x[:, :20]), t(x[:, 20:])
    close(run("silu_and_mul", {"input": x}, {}, BF16)["out"], F.silu(gate) * up)
    rounded = F.silu(gate.to(torch.bfloat16)).to(torch.float64)  # torch rounds the activation once
    close(run("silu_and_mul:vllm", {"input": x}, {}, BF16)["out"], rounded * up)


def test_silu_does_not_overflow() -> None:
    x = np.array([[-1e4, 1e4, 0.0, -INF, INF, NAN, 1, 1, 1, 1, 1, 1]])
    out = run("silu_and_mul", {"input": x}, {}, BF16)["out"][0]
    np.testing.assert_array_equal(out, [-0.0, 1e4, 0.0, NAN, INF, NAN])


def test_gelu_tanh_and_mul() -> None:
    x = bf16((6, 40), 5, 3.0)
    gate, up = t(x[:, :20]), t(x[:, 20:])
    expected = F.gelu(gate, approximate="tanh") * up
    found = run("gelu_tanh_and_mul", {"input": x}, {}, BF16)["out"]
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12, atol=1e-14)  # torch's 1 + tanh cancels
    rounded = F.gelu(gate, approximate="tanh").to(torch.bfloat16).to(torch.float64)
    found = run("gelu_tanh_and_mul:vllm", {"input": x}, {}, BF16)["out"]
    np.testing.assert_allclose(found, (rounded * up).numpy(), rtol=1e-12, atol=1e-14)


def test_swigluoai_and_mul() -> None:
    x = bf16((6, 40), 6, 8.0)  # beyond the limit on both sides
    gate, up = t(x[:, ::2]), t(x[:, 1::2])
    gate, up = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
    expected = (up + 1) * gate * torch.sigmoid(gate * 1.702)
    close(run("swigluoai_and_mul", {"input": x}, {"alpha": 1.702, "limit": 7.0}, BF16)["out"], expected)


# ---------------------------------------------------------------- softmax, rotary, embedding


def test_softmax_and_log_softmax() -> None:
    x = bf16((5, 33), 7, 10.0)
    x[2, 5:] = -INF
    close(run("softmax", {"input": x}, {}, BF16)["out"], torch.softmax(t(x), -1))
    found = run("log_softmax", {"input": x}, {}, BF16)["out"]
    np.testing.assert_allclose(found, torch.log_softmax(t(x), -1).numpy(), rtol=1e-12, atol=1e-14)


def test_softmax_corners() -> None:
    x = np.array([[-INF, -INF], [NAN, 1.0], [INF, 1.0], [-INF, 3.0]])
    out = run("softmax", {"input": x}, {}, BF16)["out"]
    np.testing.assert_array_equal(out, [[0, 0], [NAN, NAN], [NAN, NAN], [0, 1]])
    assert np.isnan(run("log_softmax", {"input": x}, {}, BF16)["out"][:3]).all()


def test_rotary_embedding_turns_pairs_as_complex_numbers() -> None:
    rng = np.random.default_rng(8)
    tokens, heads, size, rot = 4, 3, 16, 12
    angles = rng.uniform(0, 6, (9, rot // 2))
    cache = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    positions = np.array([0, 8, 3, 3])
    inputs = {
        "query": rng.standard_normal((tokens, heads, size)),
        "key": rng.standard_normal((tokens, 1, size)),
        "positions": positions,
        "cos_sin_cache": cache,
    }
    found = run("rotary_embedding", inputs, {"rot_dim": rot}, BF16)
    turn = np.exp(1j * angles[positions])[:, None, :]
    for name in ("query", "key"):
        x = inputs[name]
        z = (x[..., : rot // 2] + 1j * x[..., rot // 2 : rot]) * turn
        np.testing.assert_allclose(found[name], np.concatenate([z.real, z.imag, x[..., rot:]], axis=-1), rtol=1e-12)


def test_embedding_of_a_middle_rank() -> None:
    weight = bf16((4, 8))
    ids = np.array([3, 4, 7, 8, -1, 5])
    out = run("embedding", {"weight": weight, "ids": ids}, {"vocab_start": 4, "vocab_end": 8}, BF16)["out"]
    zero = np.zeros(8)
    np.testing.assert_array_equal(out, [zero, weight[0], weight[3], zero, zero, weight[1]])


# ---------------------------------------------------------------- quantisation


def test_per_token_fp8_quant() -> None:
    x = bf16((6, 64), 9)
    x[1] = 0.0
    x[2, 3] = 1000.0
    found = run("per_token_fp8_quant", {"input": x}, {}, BF16)
    x32 = t(x).to(torch.float32)
    scale = torch.clamp(x32.abs().amax(-1, keepdim=True) / 448.0, min=1.0 / (448.0 * 512.0))
    np.testing.assert_array_equal(found["scales"], scale.to(torch.float64).numpy())
    codes = (x32 / scale).clamp(-448, 448).to(torch.float8_e4m3fn).to(torch.float64).numpy()
    undecided = np.abs(found["out:pre"] - (found["out"] + codes) / 2) <= SLACK * np.abs(codes)
    np.testing.assert_array_equal(np.where(undecided, codes, found["out"]), codes)
    assert found["scales"][1, 0] == np.float32(1.0 / (448 * 512))
    assert (np.abs(found["out"]).max(axis=1) == 448.0).tolist() == [True, False, True, True, True, True]


def test_group_quant_scales() -> None:
    x = np.zeros((2, 256))
    x[0, 0], x[0, 130], x[1, 5] = 448.0 * 0.25, 134.5, -448.0 * 2.0
    scalars = {"eps": 1e-10}
    plain = run("per_token_group_fp8_quant", {"input": x}, scalars, {**BF16, "UE8M0": False})
    floor = float(np.float32(np.float32(1e-10) / np.float32(448.0)))
    third = np.float32(134.5) / np.float32(448.0)
    np.testing.assert_array_equal(plain["output_s"], [[0.25, third], [2.0, floor]])
    power = run("per_token_group_fp8_quant", {"input": x}, scalars, {**BF16, "UE8M0": True})
    np.testing.assert_array_equal(power["output_s"], [[0.25, 0.5], [2.0, 2.0**-33]])
    assert plain["output_q"][1, 5] == -448.0
    assert power["output_q"][0, 130] == round_to(np.array(134.5 / 0.5), "e4m3")
    assert np.count_nonzero(plain["output_q"]) == 3


def test_static_int8_rounds_half_to_even_and_saturates() -> None:
    x = np.array([0.25, 0.75, 1.25, -0.25, -0.75, 1e6, -1e6, INF, -INF, NAN])
    found = run("static_int8_quant", {"input": x, "scale_ptr": np.array([0.5])}, {}, BF16)
    assert found["out"].tolist() == [0, 2, 2, 0, -2, 127, -128, 127, -128, 0]


def test_dynamic_int8() -> None:
    x = np.array([[1.0, -2.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])
    found = run("dynamic_int8_quant", {"input": x}, {}, BF16)
    assert found["out"].tolist() == [[64, -127, 32, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(found["scale_out"], [[np.float32(2.0) / np.float32(127.0)], [0.0]])


def test_fused_norm_and_quant_goes_through_the_element_type() -> None:
    x, w = bf16((8, 512), 10), bf16((512,), 11)
    scale = np.array([float(np.float32(0.013))])
    found = run("rms_norm_static_fp8_quant", {"input": x, "weight": w, "scale": scale}, {"epsilon": 1e-6}, BF16)
    y = F.rms_norm(t(x), (512,), t(w), 1e-6).to(torch.bfloat16).to(torch.float32)
    codes = (y * (1.0 / t(scale).to(torch.float32))).clamp(-448, 448).to(torch.float8_e4m3fn).to(torch.float64).numpy()
    undecided = np.abs(found["out:pre"] - (found["out"] + codes) / 2) <= SLACK * np.abs(codes)
    assert (undecided & (found["out"] != codes)).sum() <= 2
    np.testing.assert_array_equal(np.where(undecided, codes, found["out"]), codes)


def test_a_code_that_hangs_on_an_earlier_tie_sits_on_the_boundary() -> None:
    from porter.verify.numerics.references.rounding import codes_through_element

    tie = 1.0 + 2.0**-8  # half way between two bf16 numbers, 1 and 1 + 2**-7
    factor = 1.0625 / (1.0 + 2.0**-9)  # their images lie on both sides of an e4m3 boundary, 1.0625
    exact = np.array([tie, tie + 2.0**-12])
    found = codes_through_element("q", exact, BF16, lambda y: y * factor)
    assert found["q:pre"][0] == 1.0625
    assert found["q"][1] == 1.125
    assert found["q:pre"][1] == (1.0 + 2.0**-7) * factor


# ---------------------------------------------------------------- mixture of experts


def choose(logits: np.ndarray, k: int, renormalize: bool = False, **bias: np.ndarray) -> dict[str, np.ndarray]:
    inputs = {"gating_output": logits, **bias}
    return run("topk_softmax", inputs, {"topk": k, "renormalize": renormalize}, BF16)


def test_topk_softmax_against_torch() -> None:
    logits = np.random.default_rng(12).permuted(np.tile(np.linspace(-3, 3, 24), (5, 1)), axis=1)
    found = choose(logits, 4)
    weights, experts = torch.topk(torch.softmax(t(logits), -1), 4)
    close(found["topk_weights"], weights, rtol=1e-6)  # as float32 holds them
    np.testing.assert_array_equal(found["topk_indices"], experts.numpy())
    assert found["token_expert_indices"][2].tolist() == [2, 7, 12, 17]
    close(choose(logits, 4, renormalize=True)["topk_weights"].sum(axis=1), np.ones(5))


def test_ties_go_to_the_lower_expert() -> None:
    found = choose(np.array([[1.0, 2.0, 2.0, 1.0], [0.0, 0.0, 0.0, 0.0]]), 3)
    assert found["topk_indices"].tolist() == [[1, 2, 0], [0, 1, 2]]


def test_poisoned_rows_route_to_the_first_experts_with_weight_zero() -> None:
    logits = np.array([[NAN, 1.0, 2.0], [1.0, INF, 2.0], [-INF, -INF, -INF], [-INF, 1.0, -INF]])
    for renormalize in (False, True):
        found = choose(logits, 2, renormalize)
        assert found["topk_indices"].tolist() == [[0, 1], [0, 1], [0, 1], [1, 0]]
        assert found["topk_weights"].tolist() == [[0, 0], [0, 0], [0, 0], [1, 0]]


def test_bias_chooses_but_does_not_weigh() -> None:
    logits = np.log(np.array([[0.5, 0.3, 0.2]]))
    found = choose(logits, 2, bias=np.array([0.0, 0.0, 1.0]))
    assert found["topk_indices"].tolist() == [[2, 0]]
    np.testing.assert_allclose(found["topk_weights"], [[0.2, 0.5]], rtol=1e-6)


def test_nearly_equal_values_leave_their_order_open() -> None:
    values = np.array([[0.1, 0.3, 0.3 * (1 + 2.0**-22), 0.2], [0.1, 0.3, 0.3, 0.2]])
    order, decided = ordered_choice(values, 3)
    assert order.tolist() == [[2, 1, 3], [1, 2, 3]]
    assert decided.tolist() == [[False, False, True], [True, True, True]]


def align(ids: list[int], num_experts: int, block: int, expert_map: list[int] | None = None) -> dict[str, np.ndarray]:
    length = -(-(len(ids) + num_experts * (block - 1)) // block) * block
    scalars = {
        "num_experts": num_experts, "block_size": block, "numel": len(ids), "max_num_tokens_padded": length,
        "max_num_blocks": length // block,
    }  # fmt: skip
    inputs = {"topk_ids": np.array(ids)}
    if expert_map is not None:
        inputs["expert_map"] = np.array(expert_map)
    return run("moe_align_block_size", inputs, scalars, {"index_t": "i32"})


def test_moe_align_by_hand() -> None:
    found = align([2, 0, 2, 7, 2, -1, 0], 3, 2)
    assert found["cumsum"].tolist() == [0, 2, 2, 6]
    assert found["num_tokens_post_pad"].tolist() == [6]
    assert found["sorted_token_ids"].tolist() == [1, 6, 0, 2, 4, 7, 7, 7, 7, 7]
    assert found["expert_ids"].tolist() == [0, 2, 2, -1, -1]


def test_moe_align_with_a_map() -> None:
    found = align([0, 1, 2, 1], 3, 2, expert_map=[-1, 0, 1])
    assert found["sorted_token_ids"][:4].tolist() == [1, 3, 2, 4]
    assert found["expert_ids"][:2].tolist() == [0, 1]


def test_moe_align_places_every_valid_slot_once() -> None:
    rng = np.random.default_rng(13)
    ids = rng.integers(-2, 40, 500)
    found = align(ids.tolist(), 37, 16)
    slots = found["sorted_token_ids"]
    kept = slots[slots < 500]
    assert sorted(kept) == [i for i in range(500) if 0 <= ids[i] < 37]
    owner = np.repeat(found["expert_ids"], 16)
    assert (owner[slots < 500] == ids[kept]).all()


def test_moe_dispatch_and_back() -> None:
    rng = np.random.default_rng(14)
    tokens, ids = bf16((6, 8)), rng.integers(-1, 5, 12)
    scalars = {"num_experts": 4, "topk": 2}
    found = run("moe_dispatch", {"tokens": tokens, "topk_ids": ids}, scalars, BF16)
    valid = int(found["expert_offsets"][-1])
    assert np.isnan(found["dispatched"][valid:]).all()
    assert found["dst_row"][found["dst_row"] >= 0].max() == valid - 1
    for e in range(4):
        rows = np.flatnonzero(ids == e)
        start = found["expert_offsets"][e]
        np.testing.assert_array_equal(found["dispatched"][start : start + len(rows)], tokens[rows // 2])
    weights = rng.uniform(size=(6, 2))
    back = run(
        "moe_unpermute",
        {"permuted": found["dispatched"], "inverse": found["dst_row"].reshape(6, 2), "topk_weights": weights,
         "num_valid": np.array([valid])},
        {}, BF16,
    )  # fmt: skip
    kept = (ids.reshape(6, 2) >= 0) & (ids.reshape(6, 2) < 4)
    expected = tokens * (weights * kept).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(back["out"], expected, rtol=1e-12, atol=1e-15)


def test_moe_sum_and_permute_rows() -> None:
    x = bf16((3, 4, 8))
    np.testing.assert_allclose(run("moe_sum", {"input": x}, {}, BF16)["out"], t(x).sum(1).numpy(), atol=1e-15)
    out, rows = bf16((3, 8), 1), bf16((5, 8), 2)
    found = run("permute_rows", {"out": out, "input": rows, "dst2src": np.array([4, -1, 0])}, {}, F16)["out"]
    np.testing.assert_array_equal(found, [rows[4], out[1], rows[0]])


def test_unknown_names_are_refused_with_near_ones() -> None:
    with pytest.raises(KeyError, match=r"did you mean .*rms_norm"):
        get("rmsnorm")
    with pytest.raises(KeyError, match="there are"):
        get("zzz")
