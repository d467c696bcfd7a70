"""Ahead-of-time builds: configurations become the kernels that a launch would use, and are in the cache afterwards."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

import porter.corpus.ops  # noqa: F401 (declares them)
from porter import corpus
from porter.cli import main
from porter.corpus import build, configurations
from porter.corpus.runtime import cache, dsl, specialisation
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS
from porter.corpus.runtime.specialisation import cache_key, compiled, loaded

H200 = Device("sm_90a", 132)
NORM = {
    "op": "rms_norm",
    "tokens": [1, 128, 4096],
    "args": {"result": "bf16[T,512]", "input": "bf16[T,512:1536,1]", "weight": "bf16[512]", "epsilon": 1e-6},
}


def test_texts_of_tensors():
    t = configurations.tensor("bf16[8, 512:1536,1]")
    assert (t.dtype, tuple(t.shape), t.stride()) == (torch.bfloat16, (8, 512), (1536, 1))
    assert tuple(configurations.tensor("f32[]").shape) == ()
    assert configurations.tensor("e4m3[4]").dtype == torch.float8_e4m3fn
    with pytest.raises(ValueError, match="does not describe a tensor"):
        configurations.tensor("bf16 8x512")


def test_a_configuration_is_the_kernel_that_a_launch_uses():
    x = torch.empty(4096, 1536, device="meta", dtype=torch.bfloat16)[:, :512]
    call = (torch.empty(4096, 512, device="meta", dtype=torch.bfloat16), x, x[0], 1e-6, 0.0, "vllm")
    assert OPS["rms_norm"].plan(H200, *call)[0] == list(build.plans(NORM, H200))[-1]


def test_keys_hold_all_that_the_code_depends_on(tmp_path, monkeypatch):
    kernel, other = list(build.plans({**NORM, "tokens": [1, 4096]}, H200))
    assert kernel != other
    keys = {cache_key(k, a, f) for k in (kernel, other) for a in ("sm_90a", "sm_100a") for f in ("ffi", "ptx")}
    monkeypatch.setattr(dsl, "dsl_version", lambda: "0.0")
    keys.add(cache_key(kernel, "sm_90a", "ffi"))
    monkeypatch.setattr(dsl, "FORMAT", "0")
    keys.add(cache_key(kernel, "sm_90a", "ffi"))
    for folder in ("_LIBRARY", "kernels"):  # a changed line in the library, then in the kernel's folder
        copy = tmp_path / folder
        source = (
            specialisation._LIBRARY
            if folder == "_LIBRARY"
            else Path(sys.modules[type(kernel).__module__].__file__).parent
        )
        shutil.copytree(source, copy)
        some = sorted(copy.glob("*.py"))[-1]
        some.write_text(some.read_text() + "# changed\n")
        specialisation._sources.cache_clear()
        if folder == "_LIBRARY":
            monkeypatch.setattr(specialisation, folder, copy)
        else:
            monkeypatch.setattr(sys.modules[type(kernel).__module__], "__file__", str(copy / "rms_norm.py"))
        keys.add(cache_key(kernel, "sm_90a", "ffi"))
    specialisation._sources.cache_clear()
    assert len(keys) == 8 + 2 + 2


def test_kernels_built_without_a_device_are_those_of_the_device():
    """`porter build` without --device takes the tuning table of the architecture's device."""
    named = list(build.workload_plans((), (1, 128, 8192), Device("sm_90a", 132, "NVIDIA H200")))
    assert list(build.workload_plans((), (1, 128, 8192), H200)) == named


def test_build_fills_the_cache(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "list.json").write_text(json.dumps([{**NORM, "tokens": [1]}]))
    assert main(["build", str(tmp_path / "list.json"), "--jobs", "1"]) == 0
    assert "1 of 1 kernels for sm_90a" in capsys.readouterr().out
    monkeypatch.setattr(dsl, "build", lambda *a: pytest.fail("compiled again"))
    assert compiled(next(iter(build.plans(NORM, H200))), "sm_90a").object_path.is_file()


def test_warm_up_loads_what_a_launch_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    kernels = list(build.plans({**NORM, "tokens": [1, 4096]}, H200))
    loaded.cache_clear()
    assert corpus.warm_up([{**NORM, "tokens": [1, 4096]}, {**NORM, "tokens": [1]}], H200) == len(set(kernels)) == 2
    monkeypatch.setattr(dsl, "load", lambda *a: pytest.fail("loaded again"))
    for kernel in kernels:
        with pytest.raises(TypeError):
            loaded(kernel, H200.arch)()
    with pytest.raises(ValueError, match="no op"):
        corpus.warm_up([{"op": "no"}], H200)
    monkeypatch.setattr(build, "build", lambda *a: (1, ["kernel: it does not compile"]))
    with pytest.raises(RuntimeError, match="does not compile"):
        corpus.warm_up([NORM], H200)


def test_kernels_shipped_in_a_folder_that_cannot_be_written_are_used(tmp_path, monkeypatch):
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "image"))
    kernel = next(iter(build.plans(NORM, H200)))
    shipped = compiled(kernel, "sm_90a").folder
    usable = cache._usable_root
    monkeypatch.setattr(cache, "_usable_root", lambda *_: usable(str(tmp_path / "scratch"), ""))  # as where it fails
    monkeypatch.setattr(dsl, "build", lambda *a: pytest.fail("compiled again"))
    assert compiled(kernel, "sm_90a").folder == shipped
    (shipped / "kernel.o").write_bytes(b"")  # damaged: compiled anew, elsewhere
    built = []
    monkeypatch.setattr(dsl, "build", lambda folder, *a: built.append(folder))
    assert compiled(kernel, "sm_90a").folder.is_relative_to(tmp_path / "scratch") and built


@pytest.mark.parametrize(
    ("text", "message"),
    [('[{"op": "no"}]', "no op 'no'"), ("{", "Expecting"), ('[{"op": "rms_norm", "args": {}}]', "missing a required")],
)
def test_wrong_configurations(tmp_path, capsys, text, message):
    (tmp_path / "list.json").write_text(text)
    assert main(["build", str(tmp_path / "list.json")]) == 2
    assert message in capsys.readouterr().err


def test_tune_says_that_it_needs_a_gpu(capsys):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert main(["tune", "rms_norm"]) == 2 and "needs an NVIDIA GPU" in capsys.readouterr().err
    assert main(["tune", "nothing"]) == 2 and "no workload" in capsys.readouterr().err
