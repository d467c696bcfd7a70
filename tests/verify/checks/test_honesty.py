"""Honesty, names and resources: the checks that need no launch. True ports pass, each cheat is named at its line."""

from dataclasses import replace
from pathlib import Path

import pytest

from porter.model import Severity
from porter.verify.checks.honesty import check_honesty
from porter.verify.checks.names import diagnostics, library_uses, resolve
from porter.verify.checks.ptx_stats import PtxStats
from porter.verify.checks.resources import Usage, compare_resources, summary

GOOD = (Path(__file__).parents[2] / "corpus" / "port_scale.py").read_text()


def objections(text):
    return [d.message for d in check_honesty(text, Path("port.py"))]


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new, 1)


BODY = "    grid, block, smem = launch_config(inp.numel())\n"


def entry(*lines):
    """The port with other lines at the start of its torch-facing function, whose arguments are tensors."""
    text = changed(
        "def scale(out, inp, factor: float) -> None:", "def scale(out: torch.Tensor, inp: torch.Tensor, factor):"
    )
    text = text.replace("import cutlass\n", "import torch\nimport cutlass\n", 1)
    return text.replace(BODY, "".join(f"    {line}\n" for line in lines) + BODY, 1)


def test_true_ports_have_nothing_against_them():
    assert objections(GOOD) == []
    allowed = entry(
        "out2 = torch.empty_like(inp)",
        "flat = inp.view(-1, inp.shape[-1])",
        "rows = flat.stride(0) * 2 + flat.numel() // 4",
        "if inp.data_ptr() % 16 == 0 and inp.dtype == torch.bfloat16: rows += 1",
        "counter = torch.zeros(1, dtype=torch.int32, device=inp.device)",
        "stream = torch.cuda.current_stream(inp.device)",
    )
    assert objections(allowed) == []


REMEMBERS = changed("KERNEL = ", "_SEEN = {}\n\nKERNEL = ").replace(BODY, "    _SEEN[inp.data_ptr()] = out\n" + BODY)
CACHED = entry("pass").replace("import torch\n", "import torch\nimport functools\n")
CACHED = CACHED.replace("def scale(", "@functools.lru_cache\ndef scale(")
CALL = "    scale_kernel(out, inp, factor, n, T, VEC).launch("
UNLAUNCHED = changed(CALL, "    print(").replace("smem=smem_bytes, stream=stream", "")

CHEATS = {
    "torch computes": (entry("y = torch.softmax(inp, -1)"), "uses torch.softmax"),
    "functional": (entry("import torch.nn.functional as F"), "torch.nn.functional"),
    "operators": (entry("y = inp * factor"), "computes with tensors: `inp * factor`"),
    "operator on a view": (entry("flat = inp.view(-1)", "y = flat + 1"), "`flat + 1`"),
    "in-place operator": (entry("out += inp"), "`out += inp`"),
    "method": (entry("out.copy_(inp)"), ".copy_()"),
    "method of a view": (entry("y = inp.reshape(-1).float()"), ".float()"),
    "indexed store": (entry("out[0] = 1"), "writes into a tensor"),
    "another operator": (entry("torch.ops._C.scale(out, inp)"), "torch.ops"),
    "fallback": (entry("try:\n        pass\n    except Exception:\n        pass"), "catches exceptions"),
    "state": (entry("global _last", "_last = out"), "keeps state"),
    "memo by pointer": (REMEMBERS, "_SEEN"),
    "cache": (CACHED, "remembers results"),
    "threads": (entry("import threading"), "imports threading"),
    "processes": (changed("import cutlass\n", "import cutlass\nimport subprocess\n"), "imports subprocess"),
    "the original": (changed("import cutlass\n", "import cutlass\nimport vllm\n"), "imports vllm"),
    "a neighbour": (changed("import cutlass\n", "import cutlass\nfrom .other import k\n"), "neighbouring file"),
    "eval": (entry("eval('1')"), "calls eval()"),
    "reflection": (entry("x = out.__class__"), "__class__"),
    "no kernel": (changed("@cute.kernel\n", ""), "no @cute.kernel"),
    "kernel never launched": (UNLAUNCHED, "never launched"),
    "launcher never used": (changed("launch=_launch_scale", "launch=None"), "nothing uses the launch function"),
    "not Python": ("def f(:", "not Python"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_are_named(name):
    text, message = CHEATS[name]
    found = check_honesty(text, Path("port.py"))
    assert any(message in d.message for d in found), found
    assert all(d.code == "PRT830" and d.span.line >= 1 and d.span.file == "port.py" for d in found)


def test_a_few_spilled_bytes_or_registers_only_warn():
    (found,) = compare_resources(ORIGINAL, replace(ORIGINAL, local_bytes=8, spills=8), "")
    assert found.severity is Severity.WARNING
    (found,) = compare_resources(ORIGINAL, replace(ORIGINAL, registers=51), "")
    assert found.severity is Severity.WARNING


def test_the_alignment_of_a_thread_s_arrays_only_warns():
    original = replace(ORIGINAL, local_bytes=16)
    (found,) = compare_resources(original, replace(original, local_bytes=48), "")
    assert found.severity is Severity.WARNING
    (found,) = compare_resources(original, replace(original, local_bytes=64), "")
    assert found.severity is Severity.ERROR
    (found,) = compare_resources(ORIGINAL, replace(ORIGINAL, local_bytes=32), "")
    assert found.severity is Severity.ERROR


def test_library_uses_are_found_with_their_lines():
    text = """import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32 as I
from porter.corpus import lib, runtime
import os.path

def f(x, lib2):
    i = cute.arch.thread_idx()[0] + cutlass.range(3)
    cute = x
    return Float32(i), I.width, runtime.Kernel, x.cutlass.y, os.path
"""
    uses = {u.text: u.line for u in library_uses(text)}
    assert uses["cutlass.Float32"] == 3 and uses["cutlass.Int32.width"] == 10 and uses["cutlass.range"] == 8
    assert uses["porter.corpus.runtime.Kernel"] == 10 and uses["porter.corpus.lib"] == 4
    assert "cutlass.cute.arch.thread_idx" not in uses  # `cute` is assigned to: nobody knows what it is
    assert not any("os" in u.split(".")[0] for u in uses)
    good = {u.text for u in library_uses(GOOD)}
    assert {"cutlass.cute.arch.block_idx", "cutlass.cute.kernel", "porter.corpus.runtime.Num"} <= good


def test_unknown_names_get_a_suggestion():
    text = "import math\nfrom porter.corpus import runtime\nx = math.sqroot(2) + math.sqrt(1)\ny = runtime.Kernal\n"
    uses = library_uses(text)
    answers = resolve([(u.module, u.attributes) for u in uses])
    found = diagnostics(Path("port.py"), uses, answers)
    assert [(d.span.line, d.code) for d in found] == [(3, "PRT810"), (4, "PRT810")]
    assert "`math.sqroot` does not exist" in found[0].message and "`sqrt`" in found[0].help
    assert "`Kernel`" in found[1].help
    (answer,) = resolve([("math.nosuch", ())])
    assert answer["missing"] == "nosuch"
    assert resolve([("math", ("pi", "anything"))]) == [{}]  # attributes of objects are made at run time


WIDE = PtxStats(instructions=100, loads=4, stores=2, loads_128=4, stores_128=2, barriers=2)
ORIGINAL = Usage(WIDE, registers=40, shared_bytes=128)


def test_resources_alike_pass():
    for port in (
        ORIGINAL,
        replace(ORIGINAL, registers=50),
        replace(ORIGINAL, stats=replace(WIDE, loads_128=1, loads_256=0, barriers=4)),
        replace(ORIGINAL, shared_bytes=1024),
    ):
        assert compare_resources(ORIGINAL, port, "") == []
    small = Usage(WIDE, registers=16)
    assert compare_resources(small, replace(small, registers=32), "") == []
    assert "registers 50 (40)" in summary(ORIGINAL, replace(ORIGINAL, registers=50))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"registers": 61}, "61 registers per thread, 1.52 times the original's 40"),
        ({"local_bytes": 64}, "64 bytes of local memory"),
        ({"local_bytes": 64, "spills": 32}, "32 of them spilled"),
        ({"stats": replace(WIDE, loads=32, loads_128=0)}, "no 128-bit global loads, the original has 4"),
        ({"stats": replace(WIDE, stores=16, stores_128=0)}, "no 128-bit global stores"),
        ({"shared_bytes": 4096}, "4096 bytes of static shared memory"),
    ],
)
def test_each_regression_is_told(change, message):
    (found,) = compare_resources(ORIGINAL, replace(ORIGINAL, **change), "<float>")
    assert found.code == "PRT812" and message in found.message and found.message.startswith("<float>: ")
