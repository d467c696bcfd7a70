"""bench.layer on the CPU: layers in a small, each library's calls over the corpus's, sides that are wrong or absent."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import porter.corpus as corpus  # noqa: E402
from bench import chains, dense_layer, layer, moe_layer, moe_sides  # noqa: E402
from bench.dense_layer import DenseLayer  # noqa: E402
from bench.moe_layer import MoeLayer  # noqa: E402

MOE = [small for small in layer.SMALL if isinstance(small, MoeLayer)]


@pytest.fixture(autouse=True)
def no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VLLM_C", "VLLM_MOE_C"):
        monkeypatch.delenv(name, raising=False)


def refusals(small: MoeLayer, make: moe_sides.Make, tokens: int = 9) -> str:
    first, w = small.buffers(tokens, "cpu"), small.weights("cpu", 1)
    right = moe_layer.expected(small, first, w)
    return moe_layer.wrong(small, make(tokens, small, "cpu"), first, w, right)


def test_a_run_without_a_gpu_checks_all_layers_and_says_what_is_absent(capsys: pytest.CaptureFixture[str]):
    assert layer.main(["--device", "cpu", "--tokens", "1", "5"]) == 0
    out = capsys.readouterr().out
    assert out.count("right: porter") == 2 * len(layer.SMALL)
    assert out.count("VLLM_C is not set") == 2 * len(layer.SMALL)


@pytest.mark.parametrize("small", MOE, ids=lambda m: m.dtype)
@pytest.mark.parametrize("order", ["vllm permute", "vllm shuffle"])
def test_vllms_calls_give_the_layer_where_they_are_the_corpus(small: MoeLayer, order: str):
    made = moe_sides.engine_sides(lambda name: getattr(corpus, name))
    assert refusals(small, made[order]) == ""


def spoiled(change: str) -> moe_sides.Make:
    """porter's side, with one operation that errs."""

    def make(tokens: int, sizes: Any, device: str) -> moe_sides.MoeSide:
        side = moe_sides.porter_side(tokens, sizes, device)
        route, copy, collect = side.topk_softmax, side.copy, side.collect

        def routed(weights: Any, ids: Any, *rest: Any) -> None:
            route(weights, ids, *rest)
            if change == "expert":
                ids[-1, -1] = (ids[-1, -1] + 1) % sizes.experts
            elif change == "weight":
                weights[0] *= 1.01

        def copied(b: Any, s: Any) -> None:
            copy(b, s)
            if change == "row":  # of one token among all
                b["rows"][s.inverse[3, 0]] = b["rows"][s.inverse[4, 1]]
            elif change == "end":
                s.ends[2] += 1

        def collected(b: Any, s: Any, down: Any) -> None:
            if change == "inverse":
                s.inverse[0] = s.inverse[0].flip(0)
            collect(b, s, down)

        side.topk_softmax, side.copy, side.collect = routed, copied, collected
        return side

    return make


@pytest.mark.parametrize("small", MOE, ids=lambda m: m.dtype)
@pytest.mark.parametrize(
    ("change", "why"),
    [("expert", "choices"), ("weight", "weights"), ("end", "end elsewhere"), ("row", "output"), ("inverse", "output")],
)
def test_a_side_that_errs_is_not_timed(small: MoeLayer, change: str, why: str):
    assert why in refusals(small, spoiled(change))


def test_a_dense_side_that_errs_or_fails_is_not_timed():
    small = next(s for s in layer.SMALL if isinstance(s, DenseLayer))
    first, w = small.buffers(5, "cpu"), small.weights("cpu", 1)
    right = {k: v.clone() for k, v in first.items()}
    small.run(dense_layer.reference(), right, w)
    ops = dense_layer.sides({})["porter"]
    assert dense_layer.wrong(small, ops, first, w, right) == ""

    def doubled(out: Any, x: Any) -> None:
        ops["silu_and_mul"](out, x)
        out[3] *= 1.05

    assert "off by" in dense_layer.wrong(small, ops | {"silu_and_mul": doubled}, first, w, right)

    def refusing(*_: Any) -> None:
        raise RuntimeError("no such kernel")

    assert "no such kernel" in dense_layer.wrong(small, ops | {"silu_and_mul": refusing}, first, w, right)


def test_a_library_without_an_operation_leaves_its_other_order():
    def op(name: str) -> Any:
        if name == "get_cutlass_moe_mm_data":
            raise AttributeError(f"no {name}")
        return getattr(corpus, name)

    made = moe_sides.engine_sides(op)
    assert refusals(MOE[0], made["vllm permute"]) == ""
    with pytest.raises(AttributeError, match="get_cutlass"):
        made["vllm shuffle"](3, MOE[0], "cpu")


def test_what_operations_add_is_compared_with_the_best_other_side():
    found = chains.summary({"gemms": 100.0, "porter": 105.0, "vllm permute": 120.0, "vllm shuffle": 110.0})
    assert found["best"] == "vllm shuffle" and found["added_ratio"] == 0.5
    assert found["layer_ratio"] == pytest.approx(105 / 110, abs=1e-3)
    assert "added_ratio" not in chains.summary({"gemms": 100.0, "porter": 105.0})


def test_an_error_of_one_row_is_seen_and_nan_is_none():
    right = torch.ones(100, 8)
    one = right.clone()
    one[7] = 1.1
    assert chains.row_error(one, right) == pytest.approx(0.1, abs=1e-6)
    one[7, 0] = float("nan")
    assert chains.row_error(one, right) == float("inf")


def test_rows_of_earlier_runs_stay(tmp_path: Any):
    path = tmp_path / "layer.json"
    name = layer.LAYERS[1].name
    path.write_text(json.dumps({"rows": [{"layer": name, "tokens": 8, "old": True}, {"layer": name, "tokens": 1}]}))
    rows = layer.merged(path, [{"layer": name, "tokens": 8}, {"layer": layer.LAYERS[0].name, "tokens": 64}])
    assert [(r["layer"], r["tokens"]) for r in rows] == [(layer.LAYERS[0].name, 64), (name, 1), (name, 8)]
    assert not any("old" in r for r in rows)
