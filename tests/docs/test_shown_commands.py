"""Every command that README and docs show is run, or is in a list that says why not."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from porter.cli import build_parser, main
from tests.docs.shown import ROOT, commands_of, shown_commands

# Run in one process. Command -> the exit codes that are right.
FAST = {
    "porter explain PRT503": (0,),
    "porter doctor": (0, 2),  # 2 where something that it needs is not installed
    "porter agent list": (0,),
    "porter eval --list": (0,),
    "porter port k.cu --emit py": (0,),
    "porter port k.cu --emit py > k.py": (0,),
    "porter port --analyze path/": (0,),
    "porter port --analyze third_party/": (0,),
}

# Run one after the other, in this order, each in a process: they compile and verify. Marked slow.
SLOW = {
    "porter port k.cu --instantiate 'k<__half, 8>'": (0,),
    "porter port k.cu --instantiate 'k<__nv_bfloat16, 8>' --instantiate 'k<__half, 8>'": (0,),
    "porter port csrc/*.cu -I csrc/include -D USE_BF16 --arch sm_90a -o ported": (0,),
    "porter verify ported -D USE_BF16 -I csrc": (1,),  # made with other flags than these: PRT966
    "porter port csrc/ -p build": (0,),
    "porter port k.cu --show-prompt": (0,),
    "porter port --analyze --run path/": (0,),
    "porter port k.cu -o ported": (0,),
    "porter port reference_kernels/norm/rms_norm.cu -o ported": (0,),
    "porter verify ported": (0,),
    "porter verify ported --update": (0,),
    "porter verify ported --against main": (0,),
    "porter verify ported --require performance": (0, 1),  # 1 without a GPU
    "porter verify ported --output-format github": (0,),
    "porter review ported --check": (1,),  # nobody has accepted anything
    "porter review ported --export review.html": (0,),
    "porter review ported/rms_norm.py --plain": (1,),  # ends with its input
    "pytest --porter ported/": (0,),
    "pytest --porter ported/ -k numerics --porter-seed 7": (0,),
    "porter emulate rms_norm.ptx --case rms_norm.case.toml": (0,),
    "porter emulate rms_norm.ptx --case rms_norm.case.toml --point tokens=7,hidden=4096 --checks none "
    "--output-format json": (0,),
    "porter emulate rms_norm.ptx --case rms_norm.case.toml --args out,input,weight,hidden,epsilon "
    "--set scalar_t=bf16": (2,),
}

# Commands of SLOW before which there is no port yet: the sources have a kernel of the same name.
FRESH = [c for c in SLOW if c.startswith("porter port ") and "--analyze" not in c and "reference_kernels" not in c]

KEY = "needs a key and sends requests"
GPU = "needs a GPU, or a bundle made for one"
NETWORK = "installs packages"
READER = "names a file or a run of the reader"

NOT_RUN = {
    "./dev demo": NETWORK,
    "./dev test": NETWORK,
    "pip install 'anthropic>=2.14,<3' 'bm25s>=0.3.16'": NETWORK,
    "export ANTHROPIC_API_KEY=...": KEY,
    "porter review ported": "needs a terminal",
    "porter port k.cu --agent --budget-usd 1": KEY,
    "porter port --agent k.cu --budget-usd 1": KEY,
    "porter port k.cu --agent --candidates 3": KEY,
    "porter port k.cu --optimise": KEY,
    "porter port csrc/ --agent --jobs 4": KEY,
    "porter eval": KEY,
    "porter eval --model claude-opus-5-5 --budget-usd 0.50 -o eval": KEY,
    "porter eval fill": KEY,
    "porter eval goto_loop recursive_gcd": KEY,
    "porter agent resume RUN": READER,
    "porter agent resume 20261129-180912-rms_norm-3f2a": READER,
    "porter emulate libkernels.so --case rms_norm.case.toml --entry I13__nv_bfloat16Li8E": READER,
    "porter verify ported --dsl 4.6.3,4.7.1,4.8.1": NETWORK,
    "porter verify ported --dsl 4.6.3,4.8.1 --bisect": NETWORK,
    "python -m tools.gpu.bundle build/gpu": GPU,
    "PORTER_GPU_BUNDLE=build/gpu python -m pytest -m gpu tests/gpu": GPU,
    "PORTER_GPU_BUNDLE=build/gpu python -m bench.gpu_verdicts": GPU,
    "python -m bench.corpus_vs_peers && python -m bench.plot_corpus": GPU,
    "PORTER_GPU_BUNDLE=build/gpu python -m bench.ports_vs_originals": GPU,
    "python -m tools.gpu.bundle build/gpu_tensor --style tensor": GPU,
    "python -m bench.styles --pointer build/gpu --tensor build/gpu_tensor": GPU,
    "python -m tools.gpu.public build/gpu_public SOURCES": GPU,
    "python -m bench.gpu_public --bundle build/gpu_public": GPU,
    "python -m bench.gpu_public --bundle build/gpu_public --again bench/results/gpu_public.json": GPU,
}

SOURCE = """\
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#ifdef USE_FACTOR
#include "factor.h"
#else
#define FACTOR 2.0f
#endif

template <typename T, int N>
__global__ void k(T* y, const T* x, int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * N;
#pragma unroll
  for (int j = 0; j < N; ++j)
    if (i + j < n) y[i + j] = static_cast<T>(static_cast<float>(x[i + j]) * FACTOR);
}
"""

CASE = """\
schema = 1
kernel = "k"

[[instances]]
args = ["__nv_bfloat16", 8]

[[instances]]
args = ["__half", 8]

[sizes]
n = [1, 64, 300]

[[buffers]]
name = "y"
dtype = "T"
shape = ["n"]
role = "out"

[[buffers]]
name = "x"
dtype = "T"
shape = ["n"]
role = "in"

[scalars]
n = "n"

[launch]
grid = ["ceil_div(n, 512)", 1, 1]
block = [64, 1, 1]
"""


def folder_of_a_reader(folder: Path) -> None:
    """The files that the commands name."""
    for name in ("k.cu", "csrc/k.cu", "path/k.cu", "third_party/k.cu"):
        source = folder / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(SOURCE.replace("USE_FACTOR", "USE_BF16") if name.startswith("csrc") else SOURCE)
        source.with_suffix(".case.toml").write_text(CASE)
    (folder / "csrc/include").mkdir()
    (folder / "csrc/include/factor.h").write_text("#define FACTOR 3.0f\n")
    (folder / "build").mkdir()
    entry = {"directory": str(folder), "file": "csrc/k.cu", "command": "nvcc -DUSE_BF16 -Icsrc/include -c csrc/k.cu"}
    (folder / "build/compile_commands.json").write_text(json.dumps([entry]))
    (folder / "reference_kernels/norm").mkdir(parents=True)
    for name in ("rms_norm.cu", "rms_norm.case.toml"):
        shutil.copy(ROOT / "reference_kernels/norm" / name, folder / "reference_kernels/norm")
        shutil.copy(ROOT / "reference_kernels/norm" / name, folder)


def words_of(command: str) -> list[str]:
    """The arguments after `porter`, a redirection left out and `*` expanded as a shell does."""
    words: list[str] = []
    for word in shlex.split(command.partition(" > ")[0])[1:]:
        words += sorted(map(str, Path().glob(word))) if "*" in word and "<" not in word else [word]
    return words


def test_every_command_is_run_or_has_a_reason():
    shown = shown_commands()
    lists = [FAST, SLOW, NOT_RUN]
    assert {c: page for c, page in shown.items() if sum(c in known for known in lists) != 1} == {}
    assert [c for known in lists for c in known if c not in shown] == []


def test_commands_are_found():
    page = (
        "```sh\nporter doctor  # what\n\n$ porter port 'a#b'\n# nothing\n```\n"
        "```text\nexamples:\n  porter verify ported   again\nusage: porter x\nporterhouse\n```\n"
    )
    assert list(commands_of(page)) == ["porter doctor", "porter port 'a#b'", "porter verify ported"]


@pytest.mark.parametrize("command", [c for c in shown_commands() if c.startswith("porter ")])
def test_its_arguments_are_known(command: str):
    build_parser().parse_args(words_of(command))


def test_the_modules_exist():
    wanted = {w for c in shown_commands() for a, w in zip(c.split(), c.split()[1:], strict=False) if a == "-m"}
    missing = [name for name in sorted(wanted - {"gpu"}) if importlib.util.find_spec(name) is None]
    assert missing == []


def test_fast_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    folder_of_a_reader(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    for command, codes in FAST.items():
        code = main(words_of(command))
        printed = capsys.readouterr()
        assert code in codes and "PRT950" not in printed.err, (command, printed)


@pytest.mark.slow
def test_slow_commands(tmp_path: Path):
    folder_of_a_reader(tmp_path)
    environment = os.environ | {"NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    for git in (["init", "-q", "-b", "main"], ["add", "-A"]):
        subprocess.run(["git", *git], cwd=tmp_path, check=True)
    (tmp_path / "rms_norm.ptx").write_text(rms_norm_ptx(tmp_path / "rms_norm.cu"))
    wrong = []
    for command, codes in SLOW.items():
        if command in FRESH:
            shutil.rmtree(tmp_path / "ported", ignore_errors=True)
        if "--against main" in command:  # the ports are on main
            who = ["-c", "user.name=reader", "-c", "user.email=reader@example.org"]
            subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
            subprocess.run(["git", *who, "commit", "-qm", "ports"], cwd=tmp_path, check=True)
        name, _, rest = command.partition(" ")
        module = {"porter": "porter.cli", "pytest": "pytest"}[name]
        done = subprocess.run(
            f"{shlex.quote(sys.executable)} -m {module} {rest}", shell=True, cwd=tmp_path, env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1200,
        )  # fmt: skip
        if done.returncode not in codes:
            wrong.append(f"{command}: exit code {done.returncode}\n{done.stdout[-800:]}\n{done.stderr[-800:]}")
    assert not wrong, "\n\n".join(wrong)


def rms_norm_ptx(source: Path) -> str:
    """The PTX of the kernel at bfloat16 and vectors of eight."""
    from porter.frontend.parse.source import ParseOptions
    from porter.model import Instance
    from porter.source import Source
    from porter.verify.original.build import build_original

    (built,) = build_original(
        Source.read(source), ParseOptions(arch="sm_90a"), "rms_norm_kernel", [Instance(("__nv_bfloat16", "8"))]
    )
    return built.ptx
