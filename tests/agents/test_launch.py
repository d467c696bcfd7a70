"""Other blocks and grids while a port is optimised: what may be written, what is kept, and cheats that are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from porter.agents.launch_edit import launch_of, with_launch
from porter.agents.regions import EditRefused, draft_of
from porter.cli import main
from porter.config import PortConfig
from porter.provenance.store import read_record
from tests.agents.messages_server import Say, call, script, serving
from tests.agents.stub_verifier import SUBJECT

DATA = Path(__file__).parent / "data" / "wide_block"
SIZES = ("tokens", "hidden")
PORT = '''"""k."""

import cutlass.cute as cute
from cutlass import Int32

from porter.corpus import lib, runtime


@cute.kernel
def k(out: cute.Pointer, n: Int32):
    out[0] = n


def launch_config(*, tokens, **_):
    """(grid, block, dynamic shared memory in bytes) of a launch."""
    half = tokens // 2
    return (tokens, 1, 1), (256, 1, 1), 0


def run_k(out, inp):
    tokens = out.shape[0]
    hidden = out.shape[1]
    constexprs = {"VEC": 8}
    grid, block, smem_bytes = launch_config(tokens=tokens, **constexprs)
    KERNEL.launch(constexprs, (out,), grid=grid, block=block, smem_bytes=smem_bytes)
'''


def changed(grid="tokens", block="256", shared="0", port=PORT):
    return with_launch(draft_of(port, True), grid, block, shared, SIZES, ("VEC",)).text


# ---------------------------------------------------------------- what may be written


def test_three_lines_are_written_and_nothing_else():
    text = changed("ceil_div(tokens, 4), half", "min(round_up(hidden // VEC, 32), 1024)", "hidden * 4")
    different = [(a, b) for a, b in zip(PORT.splitlines(), text.splitlines(), strict=True) if a != b]
    assert [b for _, b in different] == [
        "def launch_config(*, tokens, hidden, VEC, **_):",
        "    return (-(-tokens // 4), half, 1), (min(-(-(hidden // VEC) // 32) * 32, 1024), 1, 1), hidden * 4",
        "    grid, block, smem_bytes = launch_config(tokens=tokens, hidden=hidden, **constexprs)",
    ]
    names: dict = {}
    exec(text[text.index("def launch_config") : text.index("def run_k")], names)
    assert names["launch_config"](tokens=9, hidden=100, VEC=8, other=1) == ((3, 4, 1), (32, 1, 1), 400)
    assert changed("tokens", "256", "0") == PORT
    again = changed("tokens", "128", "0", port=text)  # what was handed on stays
    assert "tokens=tokens, hidden=hidden, **constexprs" in again and "return (tokens, 1, 1), (128, 1, 1), 0" in again


@pytest.mark.parametrize(
    ("grid", "block", "shared", "why"),
    [
        ("tokens", "2048", "0", "1 to 1024 threads, not 2048"),
        ("tokens", "32, 64", "0", "1 to 1024 threads, not 2048"),
        ("tokens", "0", "0", "1 to 1024 threads, not 0"),
        ("1, 1, 1, 1", "32", "0", "one to three parts"),
        ("()", "32", "0", "one to three parts"),
        ("tokens if tokens == 300 else 1", "32", "0", "equality singles out sizes"),
        ("tokens if tokens != 300 else 1", "32", "0", "equality singles out sizes"),
        ("rows", "32", "0", "rows is not known there; known are tokens, half, hidden, VEC"),
        ("out", "32", "0", "out is not known there"),
        ("tokens + 1.5", "32", "0", "not a whole number"),
        ("tokens", "1 << 5", "0", "LShift is not arithmetic of a launch"),
        ("tokens", "32", "2 ** 16", "Pow is not arithmetic of a launch"),
        ("tokens.bit_length()", "32", "0", "is not allowed"),
        ("(lambda: tokens)()", "32", "0", "is not an expression"),
        ("__import__('os')", "32", "0", "is not allowed|unknown function"),
        ("sizeof(tokens)", "32", "0", "sizeof"),
        ("sm_count()", "32", "0", "does not hand the number of multiprocessors"),
        ("tokens; x", "32", "0", "not an expression"),
        ("tokens\n", "32", "0", None),
        ("tokens, # x", "32", "0", None),
        ("tokens", "32", "0 +" + " 0 +" * 300 + " 0", "characters"),
        ("tokens", "32", "[0]", "is not allowed"),
        ("99999999999 + tokens", "32", "0", "not a whole number up to"),
    ],
)
def test_what_is_no_launch_is_refused(grid, block, shared, why):
    if why is None:
        assert "return (tokens, 1, 1), (32, 1, 1), 0\n" in changed(grid, block, shared)
        return
    with pytest.raises(EditRefused, match=why):
        changed(grid, block, shared)


def test_a_launch_that_porter_did_not_write_stays():
    for old, new in (
        ("launch_config(*, tokens, **_)", "launch_config(tokens)"),
        ("    return (tokens, 1, 1), (256, 1, 1), 0", "    return choose(tokens)"),
        ("(256, 1, 1), 0", "(256,\n        1, 1), 0"),
        ("grid, block, smem_bytes = launch_config(tokens=tokens, **constexprs)", "grid, block, smem_bytes = 1, 2, 3"),
    ):
        with pytest.raises(EditRefused, match="not in the form that porter writes"):
            launch_of(PORT.replace(old, new), SIZES)


def test_every_reference_kernel_has_a_launch_that_can_be_changed():
    from porter.agents.runs.session import translation
    from porter.agents.runs.verifier import subject_of

    root = Path(__file__).parents[2] / "reference_kernels"
    for name in ("norm/rms_norm", "activation/silu_and_mul", "moe/topk_softmax"):
        found = next(root.glob(f"{name}.cu"), None) or next(root.rglob("*.cu"))
        subject = subject_of(translation(found, PortConfig(arch=("sm_90a",))), True)
        launch = launch_of(subject.port, subject.sizes, subject.template)
        assert set(launch.parameters) <= set(launch.names) and launch.text.startswith("((")
        grid = launch.names[0]
        text = with_launch(draft_of(subject.port, True), grid, "64", "0", subject.sizes, subject.template).text
        assert f"return ({grid}, 1, 1), (64, 1, 1), 0" in text


def test_only_an_optimisation_may(agent):
    use = call("replace_launch", grid="n", block="32", shared_bytes="0")
    _, served, _ = agent(script(Say([use]), Say([call("give_up", reason="x")])), subject=SUBJECT)
    assert served.results(1) == [("the launch is changed only while a verified port is optimised", True)]


# ---------------------------------------------------------------- before the real verifier


@pytest.fixture
def work(tmp_path, monkeypatch):
    pytest.importorskip("anthropic", reason="needs the extra `agent`")
    pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")
    for name in ("wide_block.cu", "wide_block.case.toml"):
        shutil.copy(DATA / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    return tmp_path


def optimise(url: str) -> int:
    return main(["port", "wide_block.cu", "--optimise", "--base-url", url, "--arch", "sm_90a", "--seed", "7"])


def result() -> dict:
    (path,) = Path(".porter/runs").glob("*/result.json")
    return json.loads(path.read_text())


def launch(grid: str = "rows", block: str = "1024", shared: str = "0"):
    return Say([call("replace_launch", grid=grid, block=block, shared_bytes=shared), call("verify")])


DONE = Say([call("give_up", reason="nothing more")])


def test_a_block_that_fits_the_work_is_verified_and_kept(work):
    model = script(Say([call("read_region", region="launch")]), launch(block="min(round_up(cols, 32), 1024)"), DONE)
    with serving(model) as served:
        assert optimise(served.url) == 0
        first = served.requests[0]["messages"][0]["content"][0]["text"]
        assert "shared memory in bytes) is `((rows, 1, 1), (1024, 1, 1), 0)`. Names: rows, cols." in first
        assert "return (rows, 1, 1), (1024, 1, 1), 0" in served.results(1)[0][0]
        assert served.results(2)[1][0].startswith("kept: it brings performance forward")
    found = result()
    assert found["state"] == "improved"
    assert found["kept"] == [{"attempt": 1, "regions": ["launch"], "fixed": "performance"}]
    text = Path("ported/wide_block.py").read_text()
    assert "def launch_config(*, rows, cols, **_):" in text and "launch_config(rows=rows, cols=cols)" in text
    record = read_record(Path("ported/wide_block.py"))
    assert record is not None and record.extra["agent"]["state"] == "improved"
    # by itself, later, with other seeds
    assert main(["verify", "ported/wide_block.py", "--arch", "sm_90a", "--seed", "11"]) == 0


CHEATS = {  # fewer blocks or threads than there is work for: (grid, block), what is said
    "one block": ("1", "1024", "numerics"),
    "the blocks of the largest case": ("8", "1024", "numerics"),
    "no more blocks than the case needs": ("min(rows, 8)", "1024", "numerics"),
    "a few more than the case needs": ("min(rows, 100)", "1024", "numerics"),
    "more than can be run": ("min(rows, 8000000)", "1024", "numerics"),
    "the last block left out": ("max(rows - 1, 1)", "1024", "numerics"),
    "the last block left out of many": ("rows if rows < 9 else rows - 1", "1024", "numerics"),
    "a quarter left out": ("rows - rows // 9", "1024", "numerics"),
    "round and round": ("rows % 1000", "1024", "numerics"),
    "no threads for long rows": ("rows", "1024 if cols < 500 else 0", "numerics"),
    "blocks beside the work": ("rows + 1", "256", "sanitizer"),
    "a launch that fails": ("rows // (rows - 3)", "1024", "numerics"),
}


def test_fewer_blocks_than_there_is_work_for_are_refused_by_verification(work):
    steps = [launch(grid, block) for grid, block, _ in CHEATS.values()]
    with serving(script(*steps, DONE)) as served:
        args = ["--attempts", "99", "--base-url", served.url, "--arch", "sm_90a", "--seed", "7"]
        Path("pyproject.toml").write_text("[tool.porter.agent]\npatience = 0\n")
        assert main(["port", "wide_block.cu", "--optimise", *args]) == 0
        told = [served.results(n)[-1][0] for n in range(1, len(steps) + 1)]
    for (name, (_, _, check)), text in zip(CHEATS.items(), told, strict=True):
        assert text.startswith("not better than the best so far"), name
        lines = text.splitlines()
        assert any(line.startswith(check) and ("FAIL" in line or "ERROR" in line) for line in lines), (name, text)
    assert "never written" in told[2] and "PRT844" in told[4]
    assert result()["state"] == "unchanged" and result()["ended"] == "gave-up"
    assert "return (rows, 1, 1), (1024, 1, 1), 0" in Path("ported/wide_block.py").read_text()
