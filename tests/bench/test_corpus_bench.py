"""The bench of the corpus without a GPU: rows, adapters on the CPU fallbacks, verdicts, merging, pictures."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")

from bench import block_rows, corpus_rows, corpus_tensors, corpus_vs_peers, peers, plot_corpus  # noqa: E402
from bench.corpus_rows import WORKLOADS, label  # noqa: E402
from bench.verdict import judge  # noqa: E402
from porter.verify.backends.timing import AGAIN, Timing  # noqa: E402


def timing(noise: float = 0.0, **us: float) -> Timing:
    times = {name.replace("_", "+"): [value] * 12 for name, value in us.items()}
    first = next(iter(times))
    times[AGAIN] = [times[first][0] * (1 + noise * (-1) ** n) for n in range(12)]
    return Timing(first, times)


def test_a_row_is_met_by_any_of_three_rules():
    assert judge(timing(porter=9.0, vllm=10.0, quack=12.0, empty=1.0), 1.0)["rule"] == "peer"
    assert judge(timing(porter=10.1, vllm=10.0, empty=1.0), 10.0)["rule"] == "floor"
    assert judge(timing(porter=1.05, vllm=1.0, empty=1.0), 0.01)["rule"] == "empty"


def test_a_win_within_the_spread_is_none():
    missed = judge(timing(0.2, porter=9.6, vllm=10.0, empty=1.0), 1.0)
    assert not missed["met"] and missed["best"] == "vllm"


def test_a_miss_says_by_how_much():
    missed = judge(timing(porter=10.0, vllm=10.0, flashinfer_pdl=9.0, empty=2.0), 5.0)
    assert missed["best"] == "flashinfer+pdl" and missed["missed_by"]["peer"] == pytest.approx(10 / 9 / 0.97, abs=1e-3)
    assert missed["missed_by"]["floor"] == pytest.approx(2 / 1.02, abs=1e-3)
    assert "MISS by 14.5 % (peer)" in missed["text"]
    assert not judge(timing(vllm=10.0, empty=1.0), 1.0)["met"]


def test_rows_are_named_once():
    keys = [f"{w.name} {label(s)}" for w in WORKLOADS for s in w.shapes]
    assert len(keys) == len(set(keys)) and len(keys) >= 105
    assert all(w.close <= set(w.shapes) for w in WORKLOADS)


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch):
    for module in (corpus_tensors, corpus_rows, block_rows):  # each makes tensors of its own
        monkeypatch.setattr(module, "DEVICE", torch.device("cpu"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)


SMALL = {
    "qk_norm 32+8 heads": (3, 128), "rotary 32+8x128": (5,), "softmax": (3, 512), "silu_and_mul": (3, 256),
    "silu_mul_group128_fp8": (3, 256), "topk_softmax k=8": (3, 128), "moe_align bs=64 k=8": (3, 128),
}  # fmt: skip


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_porters_side_computes_the_row(on_cpu, workload):
    """The adapter's arguments fit the op, and the op's fallback agrees with the row's reference."""
    side = peers.porter_sides().get(workload.name)
    if side is None:
        pytest.skip("the corpus has no such kernel yet")
    assert corpus_vs_peers.wrong(workload, SMALL.get(workload.name, (3, 512)), side) == ""


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_a_wrong_side_is_not_timed(on_cpu, workload):
    shape = SMALL.get(workload.name, (3, 512))
    zeros = lambda d: tuple(torch.zeros_like(t, dtype=torch.float32) for t in workload.reference(d))  # noqa: E731
    right = lambda d: workload.reference(d)  # noqa: E731
    assert "off by" in corpus_vs_peers.wrong(workload, shape, zeros)
    assert corpus_vs_peers.wrong(workload, shape, right) == ""
    assert "ValueError" in corpus_vs_peers.wrong(workload, shape, lambda d: (_ for _ in ()).throw(ValueError("no")))


@pytest.mark.parametrize(("output", "off", "right"), [(2, 1, True), (2, 2, False), (1, 1, False)])
def test_a_zero_point_may_be_one_off_and_no_more(on_cpu, output, off, right):
    (workload,) = (w for w in WORKLOADS if w.name == "per_token_int8 azp")

    def side(inputs):
        found = list(workload.reference(inputs))
        found[output] = found[output] + off
        return tuple(found)

    assert (corpus_vs_peers.wrong(workload, (3, 512), side) == "") is right


def test_absent_libraries_are_said(monkeypatch):
    for name in ("VLLM_C", "VLLM_MOE_C", "FLASHINFER_DIR"):
        monkeypatch.delenv(name, raising=False)
    sides, notes = peers.all_sides()
    assert any("VLLM_C is not set" in n for n in notes) and "vllm" not in sides["rms_norm"]
    assert "porter" in sides["rms_norm"]


def row(kernel: str, shape: tuple[int, ...], us: float) -> dict:
    return {
        "kernel": kernel, "shape": list(shape), "bytes": 1 << 20, "floor_us": 0.3, "date": "d",
        "graph_cold": timing(porter=us, vllm=2 * us, empty=1.0).data(),
        "verdict": judge(timing(porter=us, vllm=2 * us, empty=1.0), 0.3),
    }  # fmt: skip


def test_rows_of_earlier_runs_stay(tmp_path):
    path = tmp_path / "r.json"
    assert corpus_vs_peers.merged(path, []) == []
    path.write_text(json.dumps({"rows": [row("softmax", (4096, 4096), 9.0), row("rms_norm", (1, 4096), 9.0)]}))
    found = corpus_vs_peers.merged(path, [row("rms_norm", (1, 4096), 5.0), row("rms_norm", (16, 4096), 6.0)])
    told = [(r["kernel"], r["shape"], r["graph_cold"]["us"]["porter"]) for r in found]
    assert told == [("rms_norm", [1, 4096], 5.0), ("rms_norm", [16, 4096], 6.0), ("softmax", [4096, 4096], 9.0)]


def test_a_line_for_a_person():
    text = corpus_vs_peers.line({**row("rms_norm", (1, 4096), 5.0), "not_timed": {"quack": "off by 3"}})
    assert "rms_norm" in text and "1x4096" in text and "met: peer (0.50x vllm)" in text and "[quack: off by 3]" in text
    assert "not timed" in corpus_vs_peers.line({"kernel": "a", "shape": [1]})


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [row("rms_norm", (t, 4096), 2.0 + t) for t in (1, 16, 128)] + [row("softmax", (4096, 4096), 20.0)]
    record = {"rows": rows, "copy_gbps": 4000.0, "device": "H200"}
    plot_corpus.bandwidth(record, tmp_path / "b.svg")
    plot_corpus.latency(record, tmp_path / "l.svg")
    assert all("<svg" in (tmp_path / n).read_text() for n in ("b.svg", "l.svg"))
