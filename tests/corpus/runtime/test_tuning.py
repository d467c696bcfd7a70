"""Tuning tables: what is asked, which entry answers, what the tuner would try; no GPU."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")

from porter.corpus import tune
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import Device

H200 = Device("sm_90a", 132, "NVIDIA H200")
DEFAULT = {"threads": 32, "rows": 1}


def entry(tokens, threads, key="bf16x8 4096"):
    return tuning.Entry("rms_norm", key, tokens, {"threads": threads}, 2.0, 2.5)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "FOLDER", tmp_path)
    tuning._all_entries.cache_clear()
    yield tmp_path
    tuning._all_entries.cache_clear()


def ask(device, tokens, key="bf16x8 4096"):
    return tuning.choose(device, "rms_norm", key, tokens, DEFAULT, list)


def test_the_entry_with_enough_tokens_answers(tables):
    tuning.write(tables / "nvidia_h200.json", H200, {"torch": "2"}, [entry(16, 512), entry(1024, 128)])
    assert [ask(H200, t)["threads"] for t in (1, 16, 17, 1024, 9999)] == [512, 512, 128, 128, 128]
    assert ask(H200, 1)["rows"] == 1  # what the entry does not say is the plan's rule
    assert ask(H200, 1, "bf16x8 5120") == DEFAULT


def test_devices_of_one_architecture_share_entries(tables):
    tuning.write(tables / "nvidia_h200.json", H200, {}, [entry(16, 512)])
    assert ask(Device("sm_90a", 114, "NVIDIA H100 PCIe"), 1)["threads"] == 512
    assert ask(Device("sm_100a", 148, "NVIDIA B200"), 1) == DEFAULT


def test_writing_again_keeps_other_entries_and_replaces_equal_ones(tables):
    path = tables / "nvidia_h200.json"
    tuning.write(path, H200, {"torch": "2"}, [entry(16, 512), entry(1024, 128)])
    tuning.write(path, H200, {"torch": "2"}, [entry(16, 256)])
    head, entries = tuning.read(path)
    assert (head["device"], head["sm_count"]) == ("NVIDIA H200", 132)
    assert [(e.tokens, e.choice["threads"]) for e in entries] == [(16, 256), (1024, 128)]
    path.write_text(json.dumps({"schema": 99}))
    with pytest.raises(ValueError, match="schema 99"):
        tuning.read(path)


@pytest.mark.parametrize("tokens", [1, 8192])
@pytest.mark.parametrize("name", ["rms_norm", "qk_norm"])
def test_candidates_are_different_kernels_and_the_rule_is_first(tables, name, tokens):
    from porter.corpus.ops.workloads import WORKLOADS

    pytest.importorskip("cutlass")
    for dims in WORKLOADS[name].dims:
        case = tune.Case(name, tuple(dims.items()), tokens, "bf16")
        kernels = tune.kernels_of(case, H200)
        assert 4 <= len(kernels) <= 128
        assert next(iter(kernels)) == tune.plan_choice(case, H200, {})[0]


def test_a_table_changes_the_kernel(tables):
    pytest.importorskip("cutlass")
    case = tune.Case("rms_norm", (("hidden", 4096),), 16, "bf16")
    before = tune.plan_choice(case, H200, {})[1].default["threads"]
    tuning.write(tables / "nvidia_h200.json", H200, {}, [entry(16, 64)])
    from porter.corpus.runtime.ops import OPS

    kernel = OPS["rms_norm"].plan(H200, *case.arguments("meta"))[0]
    assert before != 64 and kernel.rows.threads == 64


ELEMENT_WISE = ["static_scaled_fp8_quant", "static_scaled_int8_quant", "per_token_group_fp8_quant", "mxfp8_quantize",
                "scaled_fp4_quant", "nvfp4_dequantize"]  # fmt: skip


@pytest.mark.parametrize("device", [H200, Device("sm_90a", 78, "a smaller one"), Device("sm_100a", 148, "NVIDIA B200")])
@pytest.mark.parametrize("name", ELEMENT_WISE)
def test_without_a_table_much_work_makes_large_blocks_and_little_work_many(tables, name, device):
    """Blocks of a few KB are started no quicker than the memory could move them."""

    def elements(tokens):
        choice = tune.plan_choice(tune.Case(name, (("hidden", 4096),), tokens, "bf16"), device, {})[1].default
        return choice["rows"], choice["threads"] * choice["rows"] * choice["vec"]

    assert elements(8192)[1] >= 4096 and elements(8192)[0] <= 4
    assert elements(128)[0] == 1 and 128 * 4096 // elements(128)[1] >= device.sm_count


def test_the_scale_of_all_numbers_takes_one_block_or_two_launches_where_kernels_overlap(tables, monkeypatch):
    def launches(tokens):
        case = tune.Case("dynamic_scaled_fp8_quant", (("hidden", 4096),), tokens, "bf16")
        choice = tune.plan_choice(case, H200, {})[1].default
        return choice["launches"], choice["most"] // H200.sm_count

    monkeypatch.setenv("PORTER_PDL", "1")
    assert [launches(t) for t in (1, 16, 1024, 8192)] == [(1, 0), (2, 4), (2, 4), (2, 8)]
    monkeypatch.setenv("PORTER_PDL", "0")
    assert launches(1024)[0] == 1  # a second launch that starts late costs more than the barrier


def test_the_shipped_tables_can_be_read():
    for path in tuning.FOLDER.glob("*.json"):
        head, entries = tuning.read(path)
        assert head["sm_count"] > 0 and entries and all(e.us <= e.default_us for e in entries)


def test_every_entry_of_the_tables_answers_a_plan_of_the_op():
    """An entry under a name or key that no plan asks for would never be used."""
    from porter.corpus.ops.workloads import WORKLOADS

    asked = {}
    for name, workload in WORKLOADS.items():
        for dims in workload.dims if workload.tuned else ():
            _, question = tune.plan_choice(tune.Case(name, tuple(dims.items()), 16, "bf16"), H200, {})
            asked[question.op, question.key] = set(question.default)
    for table in tuning.FOLDER.glob("*.json"):
        entries = tuning.read(table)[1]
        assert entries and all(e.choice.keys() <= asked[e.op, e.key] for e in entries)


def test_float16_shares_what_was_found_for_bfloat16(tables):
    tuning.write(tables / "nvidia_h200.json", H200, {}, [entry(16, 64)])
    f16, f32 = (tune.Case("rms_norm", (("hidden", 4096),), 16, dtype) for dtype in ("f16", "f32"))
    from porter.corpus.runtime.ops import OPS

    assert OPS["rms_norm"].plan(H200, *f16.arguments("meta"))[0].rows.threads == 64
    assert OPS["rms_norm"].plan(H200, *f32.arguments("meta"))[0].rows.threads != 64


@pytest.mark.parametrize(
    ("old", "new"), [("lead", "prefetch_blocks"), ("ahead", "prefetch_distance"), ("stream", "streaming")]
)
def test_choices_of_schema_1_are_read_under_their_new_names(tables, old, new):
    path = tables / "nvidia_h200.json"
    tuning.write(path, H200, {}, [tuning.Entry("rms_norm", "bf16x8 4096", 16, {old: 3}, 2.0, 2.5)])
    path.write_text(path.read_text().replace('"schema": 2', '"schema": 1'))
    tuning._all_entries.cache_clear()
    assert tuning.choose(H200, "rms_norm", "bf16x8 4096", 16, {new: 0}, list) == {new: 3}
