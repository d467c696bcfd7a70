"""What engines call for a model: sizes, schemes and places from config.json; builds and tuning of exactly that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from porter.cli import main
from porter.corpus import build, configurations, model_calls, tune
from porter.corpus.models import ModelError, calls, read_model
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS

CONFIGS = Path(__file__).parent / "configs"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.json"))
DEVICES = {"sm_90a": Device("sm_90a", 132), "sm_100a": Device("sm_100a", 148)}


def of(name, **options):
    return model_calls(CONFIGS / f"{name}.json", **options)


def ops(found):
    return [call["op"] for call in found.calls]


def args(found, op, place=""):
    (one,) = (c["args"] for c in found.calls if c["op"] == op and any(place in p for p in c["for"]))
    return one


def changed(tmp_path, name, **keys):
    path = tmp_path / "config.json"
    given = {**json.loads((CONFIGS / f"{name}.json").read_text()), **keys}
    path.write_text(json.dumps({k: v for k, v in given.items() if v is not None}))
    return path


@pytest.mark.parametrize(("arch", "fusion", "gpus"), [("sm_90a", True, 1), ("sm_100a", True, 2), ("sm_90a", False, 2)])
@pytest.mark.parametrize("name", NAMES)
def test_every_call_has_a_kernel_at_every_number_of_tokens(name, arch, fusion, gpus):
    pytest.importorskip("cutlass")
    for call in of(name, fusion=fusion, arch=arch, tensor_parallel=gpus, tokens=(1, 300)).calls:
        made = [k for n in call["tokens"] for k in build.plans({**call, "tokens": [n]}, DEVICES[arch])]
        assert len(made) == 2, call


@pytest.mark.parametrize("name", ["llama_nvfp4", "deepseek_v3_fp8", "gpt_oss"])
def test_calls_run(name):
    """Their arguments fit together, values of integers too: the fallbacks take them on the CPU."""
    for call in of(name).calls:
        OPS[call["op"]].on_cpu(*configurations.arguments(call, 3, "cpu"))


def test_a_dense_model():
    found = of("llama", tensor_parallel=2)
    assert ops(found) == ["embedding", "rms_norm", "rotary_embedding", "fused_add_rms_norm", "silu_and_mul"]
    assert args(found, "silu_and_mul") == {"result": "bf16[T,1536]", "input": "bf16[T,3072]"}
    assert args(found, "embedding")["weight"] == "bf16[2016,1024]"
    # parts of one packed row: 8 heads of queries, 2 of keys, 2 of values
    assert args(found, "rotary_embedding")["query"] == "bf16[T,512:768,1]"
    assert args(found, "rotary_embedding")["key"] == "bf16[T,128:768,1]"
    assert found.calls[3]["for"] == ["norm after attention", "input norm", "last norm"]
    assert not found.left_out and not of("llama", tensor_parallel=8).left_out  # 4 heads of keys: one each


def test_schemes_fuse_where_there_is_an_op():
    assert ops(of("qwen3_fp8"))[1:] == [
        "rms_norm_static_fp8_quant", "fused_qk_norm_rope", "static_scaled_fp8_quant",
        "fused_add_rms_norm_static_fp8_quant", "silu_and_mul_quant", "fused_add_rms_norm",
    ]  # fmt: skip
    apart = of("qwen3_fp8", fusion=False)
    assert set(ops(apart)) == {
        "embedding", "rms_norm", "fused_add_rms_norm", "rotary_embedding", "silu_and_mul", "static_scaled_fp8_quant"
    }  # fmt: skip
    assert args(apart, "rms_norm", "query")["input"] == "bf16[T,16,128:3072,128,1]"
    assert "dynamic_scaled_int8_quant" in ops(of("llama_int8"))
    assert ops(of("llama_fp8")).count("rms_norm_dynamic_per_token_quant") == 2  # with and without a residual


def test_layers_that_are_not_quantised():
    found = of("llama_nvfp4")  # attention of the first layer is not
    assert ops(found).count("rms_norm") == 1 and "rms_norm_nvfp4_quant" in ops(found)
    assert args(found, "silu_and_mul_nvfp4_quant")["result_block_scale"] == "u8[up(T,128),192]"
    assert args(found, "rms_norm_nvfp4_quant")["residual"] == "bf16[T,1024]"


def test_patterns_of_layers(tmp_path):
    for pattern in ("model.layers.0.self_attn*", "model.layers.0.self_attn", "re:.*\\.0\\.self_attn\\..*"):
        config = {"quant_method": "fp8", "modules_to_not_convert": [pattern]}
        schemes = read_model(changed(tmp_path, "llama", quantization_config=config)).schemes
        assert [schemes.of(part, layer) for part in ("qkv", "up") for layer in (0, 1)] == [
            "none", "fp8_token", "fp8_token", "fp8_token"
        ]  # fmt: skip


def test_experts():
    found = of("qwen3_moe", tensor_parallel=2)
    assert args(found, "silu_and_mul") == {"result": "bf16[T*4,384]", "input": "bf16[T*4,768]"}
    deepseek = of("deepseek_v3_fp8")
    # the router reads the norm's result, so that inputs of experts are quantised on their own
    assert args(deepseek, "per_token_group_fp8_quant", "experts' input")["input"] == "bf16[T,1024]"
    assert args(deepseek, "silu_and_mul_per_block_quant", "the experts")["scales"] == "f32[T*4,4:1,up(T*4,4)]"
    assert args(deepseek, "rms_norm", "compressed keys")["input"] == "bf16[T,256:832,1]"
    assert args(deepseek, "rotary_embedding")["query"] == "bf16[T,16,64:3072,192,1]"
    assert {"grouped_topk", "moe_align_block_size", "moe_sum"} <= set(ops(deepseek)) and not deepseek.left_out
    assert "per_token_group_fp8_quant_packed" in ops(of("deepseek_v3_fp8", arch="sm_100a"))
    assert "topk_softmax" in ops(of("gpt_oss"))
    assert args(of("gpt_oss"), "swigluoai_and_mul")["input"] == "bf16[T*4,1920]"


def test_the_text_part_of_a_model(tmp_path):
    text = json.loads((CONFIGS / "qwen3_fp8.json").read_text())
    quantised = text.pop("quantization_config")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "seen", "text_config": text, "quantization_config": quantised}))
    assert model_calls(tmp_path).calls == of("qwen3_fp8").calls


@pytest.mark.parametrize(
    ("keys", "code", "message"),
    [
        ({"model_type": "mamba"}, "PRT970", "model_type 'mamba'"),
        ({"model_type": None}, "PRT970", "model_type None"),
        ({"hidden_size": None}, "PRT971", "no 'hidden_size'"),
        ({"vocab_size": "many"}, "PRT971", "'vocab_size' is 'many'"),
        ({"num_key_value_heads": 5}, "PRT971", "5 heads of keys"),
        ({"torch_dtype": "int8"}, "PRT971", "'torch_dtype' is 'int8'; known: bfloat16"),
        ({"quantization_config": [1]}, "PRT971", "quantization_config"),
        ({"quantization_config": {"quant_method": "quark"}}, "PRT972", "'quark' is not known"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [64, 64]}}, "PRT972", "[64, 64]"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "W4A8"}}, "PRT972", "'W4A8'"),
        ({"num_attention_heads": 12}, "PRT973", "12 query heads"),
    ],
)
def test_files_that_no_calls_can_be_told_from(tmp_path, keys, code, message):
    with pytest.raises(ModelError) as raised:
        model_calls(changed(tmp_path, "llama", **keys), tensor_parallel=8)
    assert raised.value.code == code and message in str(raised.value)
    assert "config.json" in str(raised.value) and "help: " in str(raised.value)


@pytest.mark.parametrize("text", ["{", "[]", None])
def test_files_that_cannot_be_read(tmp_path, text, capsys):
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text)
    for command in ("build", "tune"):
        assert main([command, "--model", str(tmp_path), "--dry-run"]) == 2
        assert "PRT971" in capsys.readouterr().err


def test_a_dry_run_is_a_list_that_build_takes(tmp_path, capsys, monkeypatch):
    pytest.importorskip("cutlass")
    options = ["--model", str(CONFIGS / "mixtral_awq.json"), "--tokens", "1,64"]
    assert main(["build", *options, "--dry-run", "--json"]) == 0
    text = capsys.readouterr().out
    (tmp_path / "list.json").write_text(text)
    built = []
    monkeypatch.setattr(build, "build", lambda kernels, *a: (len(built.append(set(kernels)) or built[-1]), []))
    assert main(["build", str(tmp_path / "list.json")]) == 0
    assert main(["build", *options, "--json"]) == 0
    assert built[0] == built[1] and len(built[0]) <= sum(c["kernels"] for c in json.loads(text)["calls"])
    printed = capsys.readouterr().out
    assert json.loads(printed[printed.index("{") :])["kernels"] == len(built[0])
    assert main(["build", *options, "--dry-run"]) == 0
    assert "silu_and_mul (" in capsys.readouterr().out


def test_what_is_tuned_for_a_model(capsys):
    pytest.importorskip("cutlass")
    found = of("deepseek_v3_fp8", tokens=(1, 64))
    cases = tune.model_cases(found, DEVICES["sm_90a"])
    asked = {(q.op, q.key, q.tokens) for q in cases.values()}
    assert len(asked) == len(cases)
    # each call of the model finds an entry of its own size
    for call in found.calls:
        for tokens in call["tokens"]:
            case = tune.ModelCase(call["op"], json.dumps(call), tokens)
            try:
                _, question = tune.plan_choice(case, DEVICES["sm_90a"], {})
            except tune.NothingToTune:
                assert not WORKLOADS[call["op"]].tuned
                continue
            assert (question.op, question.key, question.tokens) in asked
    case = next(c for c in cases if c.op == "rotary_embedding")
    assert len(tune.kernels_of(case, DEVICES["sm_90a"])) > 1
    assert main(["tune", "--model", str(CONFIGS / "llama.json"), "--dry-run", "--json", "--tokens", "1,2"]) == 0
    assert json.loads(capsys.readouterr().out)["calls"][0]["entries"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["build", "list.json", "--model", "config.json"], "give --model or a list, not both"),
        (["build", "--dry-run"], "--dry-run is about a model"),
        (["tune", "rms_norm", "--model", "config.json"], "give --model or ops, not both"),
        (["tune", "--tensor-parallel", "2", "--dry-run"], "is about a model"),
    ],
)
def test_options_that_do_not_go_together(words, message, capsys):
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_texts_of_tensors_with_memory():
    made = configurations.tensor("i64[16]<3", "cpu")
    assert made.dtype == torch.int64 and made.min() >= 0 and made.max() < 3
    assert configurations.tensor("f32[1]", "cpu").item() == pytest.approx(0.02)
    assert tuple(configurations.tensor("u8[up(5*3,128)+2,4]").shape) == (130, 4)
    assert configurations.tensor("f32[5,2:1,up(5,4)]").stride() == (1, 8)
    for text in ("f32[up(3)]", "f32[-1]", "f32[2**3]", "f32[T]", "f32[4]<"):
        with pytest.raises(ValueError, match="does not describe a tensor"):
            configurations.tensor(text)


def test_tokens_of_engines_are_the_default():
    assert all(call["tokens"] == list(calls.TOKENS) for call in of("llama").calls)
