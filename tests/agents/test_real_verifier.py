"""A model that fills a hole right and models that cheat, before the real verifier: `porter port --agent` whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from porter.cli import main
from porter.provenance.store import is_edited, read_record
from tests.agents.messages_server import Fail, Say, call, script, serving

pytest.importorskip("anthropic", reason="needs the extra `agent`")
pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")

TASK = Path(__file__).parent / "data" / "vadd4"
RIGHT = """\
x = Uint32(a[i])
y = Uint32(b[i])
out[i] = ((x & Uint32(0x7F7F7F7F)) + (y & Uint32(0x7F7F7F7F))) ^ ((x ^ y) & Uint32(0x80808080))"""
KEY = "sk-test-0123456789"


@pytest.fixture
def work(tmp_path, monkeypatch):
    for name in ("vadd4.cu", "vadd4.case.toml"):
        shutil.copy(TASK / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return tmp_path


def fill(code: str, region: str = "hole-1"):
    return [call("replace_region", region=region, code=code), call("verify")]


def port(url: str, *more: str) -> int:
    return main(["port", "vadd4.cu", "--agent", "--base-url", url, "--arch", "sm_90a", "--seed", "7", *more])


def results() -> list[dict]:
    return [json.loads(p.read_text()) for p in sorted(Path(".porter/runs").glob("*/result.json"))]


def test_a_right_fill_is_verified_written_and_known_as_the_agents(work, capsys):
    with serving(script(Say([call("search_corpus", query="__vadd4")]), Say(fill(RIGHT), cache_read=3000))) as served:
        assert port(served.url) == 0
    (result,) = results()
    assert (result["state"], result["kept"]) == ("verified", [{"attempt": 1, "regions": ["hole-1"], "fixed": "holes"}])
    text = Path("ported/vadd4.py").read_text()
    assert "0x7F7F7F7F" in text and "hole(" not in text
    record = read_record(Path("ported/vadd4.py"))
    assert record is not None and not record.holes and record.extra["agent"]["state"] == "verified"
    lines = text.splitlines()
    authors = {lines[e.line - 1].strip()[:6]: e.author for e in record.line_map if "agent" in e.author}
    assert set(authors.values()) == {"agent:1"} and "out[i]" in authors
    assert next(v for v in record.verdicts if v.check == "numerics").status.value == "PASS"
    assert record.baseline  # `porter verify` compares with what the agent's port achieved
    out = capsys.readouterr().out
    assert "attempt 1: hole-1 fixed holes" in out and "not verified: performance: " in out
    assert re.search(r"^vadd4 +verified +1 +5200 +\$0\.01$", out, re.MULTILINE), out
    agent = record.extra["agent"]
    assert agent["cost"] == "$0.01" and agent["spent"]["usd"] == "0.0126"
    assert [line.split(":")[0] for line in agent["not_verified"]] == ["performance"]
    assert is_edited(Path("ported/vadd4.py"))
    everything = "".join(p.read_text() for p in Path(".porter").rglob("*") if p.is_file())
    assert KEY not in everything
    # translating again does not throw the agent's lines away
    assert main(["port", "vadd4.cu", "--no-verify"]) == 2
    assert Path("ported/vadd4.py").read_text() == text


def test_resume_of_a_run_and_of_a_finished_one(work, capsys):
    with serving(script(Fail(401, "authentication_error", "invalid x-api-key"))) as served:
        assert port(served.url, "--model", "claude-sonnet-5-5") == 1
    run = next(Path(".porter/runs").iterdir())
    events = (run / "events.jsonl").read_text().splitlines(keepends=True)
    kinds = [json.loads(e)["event"] for e in events]
    (run / "events.jsonl").write_text("".join(events[: kinds.index("request")]))  # as killed before it asked
    manifest = json.loads((run / "run.json").read_text())
    with serving(script(Say(fill(RIGHT)))) as served:
        manifest["settings"]["base_url"] = served.url
        (run / "run.json").write_text(json.dumps(manifest))
        assert main(["agent", "resume", run.name]) == 0
        text = Path("ported/vadd4.py").read_text()
        assert "0x7F7F7F7F" in text and len(served.requests) == 1
        assert main(["agent", "resume", run.name]) == 0  # nothing is asked, nothing changes
        assert len(served.requests) == 1 and Path("ported/vadd4.py").read_text() == text
    assert main(["agent", "list"]) == 0 and "verified" in capsys.readouterr().out
    source = Path("vadd4.cu")
    source.write_text(source.read_text() + "// changed\n")
    assert main(["agent", "resume", run.name]) == 2
    assert main(["agent", "resume", "nothing"]) == 2


def test_an_original_that_cannot_be_run_is_found_before_anything_is_sent(work):
    """Its PTX has a call that the emulator does not know, so no port of it could be judged."""
    source = Path("vadd4.cu")
    pointer = "__device__ unsigned (*way)(unsigned, unsigned, int, unsigned) = add_bytes;"
    text = source.read_text().replace("__global__", f"{pointer}\n__global__")
    source.write_text(text.replace("add_bytes(a, b, n", "way(a, b, n"))
    with serving(script(Say(fill(RIGHT)))) as served:
        assert port(served.url) == 1
        assert served.requests == []
    (result,) = results()
    assert (result["state"], result["ended"], result["cost"]) == ("unchanged", "no-harness", "$0.00")
    assert "cannot be verified here: the original" in result["message"] and "indirect call" in result["message"]


def test_a_run_is_worked_on_by_one_process_at_a_time(work, capsys):
    from filelock import FileLock

    with serving(script(Fail(401, "authentication_error"))) as served:
        assert port(served.url) == 1
    run = next(Path(".porter/runs").iterdir())
    with FileLock(run / "lock"):
        assert main(["agent", "resume", run.name]) == 2
    assert "another porter is working on the run" in capsys.readouterr().out


def test_a_defect_of_porter_in_a_run_is_a_message(work, monkeypatch, capsys):
    from porter.agents.runs.verifier import PortVerifier

    def broken(*args):
        raise RuntimeError("boom")

    monkeypatch.setattr(PortVerifier, "verify", broken)
    with serving(script(Say(fill(RIGHT)))) as served:
        assert port(served.url) == 2
    assert "boom" in "".join(capsys.readouterr())
    assert "hole(1" in Path("ported/vadd4.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("events", [1, 2, 3, 4, 6, 8, 9, 10])
def test_kill_9_of_the_command_then_resume(work, events):
    """The command itself is killed when its record has so many lines, with verifier, workers and all."""

    def model(request, number):
        time.sleep(0.3)
        said = [m for m in request["messages"] if m["role"] == "assistant"]
        return Say(fill(RIGHT)) if said else Say([call("search_corpus", query="__vadd4")])

    with serving(model) as served:
        command = [sys.executable, "-m", "porter.cli", "port", "vadd4.cu", "--agent", "--arch", "sm_90a", "--seed", "7"]
        child = subprocess.Popen(
            [*command, "--base-url", served.url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 120
        while child.poll() is None and time.monotonic() < end:
            records = list(Path(".porter/runs").glob("*/events.jsonl"))
            if records and records[0].read_bytes().count(b"\n") >= events:
                os.kill(child.pid, signal.SIGKILL)
                break
            time.sleep(0.005)
        child.wait(60)
        text = Path("ported/vadd4.py").read_text()
        assert "hole(1" in text or "0x7F7F7F7F" in text
        (run,) = Path(".porter/runs").iterdir()
        assert main(["agent", "resume", run.name]) == 0
        assert len(served.requests) <= 3  # two, and at most the one that was under way again
    assert "0x7F7F7F7F" in Path("ported/vadd4.py").read_text()
    record = read_record(Path("ported/vadd4.py"))
    assert record is not None and record.extra["agent"]["state"] == "verified"


def test_two_failed_compiles_then_right_with_every_tool_on_the_way(work):
    """What the tools say is about the real port: lines of it and of the CUDA file, launches, resources, counts."""
    wrong = RIGHT.replace("0x80808080", "0x80808000")
    steps = [
        Say([call("read_region", region="hole-1"), call("search_corpus", query="__vadd4 packed bytes"),
             call("read_exemplar", name="lib.integers.byte_perm"), call("compile")]),
        Say([call("replace_region", region="hole-1", code="out[i] = Uint32(a[i]) + nothing"), call("check_names"),
             call("compile"), call("verify")]),
        Say([call("replace_region", region="hole-1", code="if i > 0:\n    z = Int32(1)\nout[i] = Uint32(z)"),
             call("compile"), call("verify"), call("compare_resources")]),
        Say([call("replace_region", region="hole-1", code=wrong), call("compile"), call("verify"),
             call("first_divergence"), call("compare_resources"), call("profile")]),
        Say(fill(RIGHT)),
    ]  # fmt: skip
    with serving(script(*steps)) as served:
        assert port(served.url) == 0
    (result,) = results()
    assert result["state"] == "verified" and result["spent"]["attempts"] == 4
    assert [k["fixed"] for k in result["kept"]] == ["holes", "compile", "numerics"]
    told = [[t for t, _ in served.results(n)] for n in (1, 2, 3, 4)]
    region, found, exemplar, compiled = told[0]
    assert 'runtime.hole(1, "PRT023"' in region and re.match(r" *\d+ ", region)
    assert "lib.int8_scales" in found and "prmt" in exemplar
    assert re.match(r"PRT811 \(vadd4\.py:\d+, vadd4\.cu:9\): for sm_90a: HoleReached: hole 1", compiled), compiled
    _, names, compiled, judged = told[1]
    assert names == "every name exists"  # of the libraries; the compiler knows the others
    assert re.match(r"PRT811 \(vadd4\.py:\d+, vadd4\.cu:9\): .*'nothing' is not defined", compiled), compiled
    assert judged.startswith("kept: it brings holes forward") and "compile      FAIL" in judged
    _, compiled, judged, resources = told[2]
    assert "PRT811" in compiled and "'z'" in compiled and "rolled back" in judged
    assert resources.startswith("not known")
    _, compiled, judged, parted, resources, counts = told[3]
    assert compiled == "it compiles" and judged.startswith("kept: it brings compile forward")
    assert "numerics     FAIL" in judged and "n=1" in parted, parted
    assert re.search(
        r"note \(vadd4\.py:\d+, vadd4\.cu:9\): original and port first diverge at line 9 of vadd4\.cu: a store gives",
        parted,
    ), parted
    assert '"registers"' in resources and "instructions" in counts + resources
    assert not re.search(r"/tmp|porter-\w+/", "".join("".join(t) for t in told))  # no folder of this machine
