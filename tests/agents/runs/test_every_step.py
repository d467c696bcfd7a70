"""`porter port --agent` dies at each of its steps and is resumed: the same port, no reply asked twice, no half file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from porter.provenance.store import read_record
from tests.agents.messages_server import Say, call, serving
from tests.agents.mortal import DEAD
from tests.agents.runs.test_batch import NAMES, kernel_of, solver
from tests.agents.runs.test_eval import TASKS
from tests.agents.test_cheats import DATA, RIGHT

pytest.importorskip("anthropic", reason="needs the extra `agent`")

ONE = Say([call("search_corpus", query="__vadd4"), call("check_names")], cache_write=3000)
TWO = Say([call("replace_region", region="hole-1", code="out[i] = nope"), call("verify")], cache_read=3000)
THREE = Say([call("replace_region", region="hole-1", code=RIGHT), call("verify")], cache_read=3500)


def model(request, number):
    """The reply depends on the conversation alone."""
    return (ONE, TWO, THREE)[sum(m["role"] == "assistant" for m in request["messages"])]


class Mortal:
    """The process that runs commands which die; see mortal.py."""

    def __init__(self):
        command = [sys.executable, "-m", "tests.agents.mortal"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, args, die_at=-1):
        self.process.stdin.write(json.dumps({"args": args, "die_at": die_at}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def mortal(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setenv("PORTER_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name in ("vadd4.cu", "vadd4.case.toml"):
        shutil.copy(DATA / name, ".")
    found = Mortal()
    yield found
    found.process.stdin.close()
    found.process.wait(60)


def fresh() -> None:
    for folder in ("ported", ".porter"):
        shutil.rmtree(folder, ignore_errors=True)


def outcome() -> dict:
    """What a run leaves, but for what differs between runs: ids, times, and requests that may have been repeated."""
    (path,) = Path(".porter/runs").glob("*/result.json")
    result = json.loads(path.read_text())
    spent = result["spent"]
    same = {k: result[k] for k in ("state", "ended", "message", "kept", "unseen", "not_verified")}
    same |= {k: spent[k] for k in ("usd", "tokens", "replies", "attempts")}
    record = read_record(Path("ported/vadd4.py"))
    assert record is not None and record.extra["agent"]["state"] == result["state"]
    return {
        "result": same, "port": Path("ported/vadd4.py").read_text(), "map": record.line_map, "holes": record.holes,
        "candidate": path.with_name("candidate.py").read_text(), "cost": result["cost"].split(",")[0],
    }  # fmt: skip


def go_through(mortal, url, served, points):
    args = ["port", "vadd4.cu", "--agent", "--arch", "sm_90a", "--seed", "7", "--base-url", url]
    whole = mortal.run(args)
    assert whole["code"] == 0 and len(served.requests) == 3, whole
    expected = outcome()
    assert expected["result"]["state"] == "verified" and "0x7F7F7F7F" in expected["port"]
    fresh()
    translated = mortal.run(["port", "vadd4.cu", "--arch", "sm_90a", "--seed", "7"])
    assert translated["code"] == 1
    texts = (Path("ported/vadd4.py").read_text(), expected["port"])
    steps = whole["steps"]
    for die_at in points(steps):
        at = (die_at, steps[die_at])
        fresh()
        served.requests.clear()
        died = mortal.run(args, die_at)
        assert died["code"] == DEAD and died["steps"] == steps[:die_at], at
        port = Path("ported/vadd4.py")
        assert not port.exists() or port.read_text() in texts, at
        before = len(served.requests)
        runs = list(Path(".porter/runs").glob("*/run.json"))
        if runs:
            assert mortal.run(["agent", "resume", runs[0].parent.name])["code"] == 0, at
        else:  # nothing had been asked yet, and a new run starts from nothing
            assert before == 0, at
            shutil.rmtree(".porter", ignore_errors=True)
            assert mortal.run(args)["code"] == 0, at
        assert outcome() == expected, at
        repeated = len(served.requests) - 3
        (result,) = Path(".porter/runs").glob("*/result.json")
        cost = json.loads(result.read_text())["cost"]
        assert repeated in (0, 1) and (repeated == 0 or "1 unanswered request possibly charged" in cost), (at, cost)
    return steps


SOME = ("after reply", "after rename vadd4.port.json", "os.rename result.json")


def last(steps: list[str]) -> list[int]:
    """The last step of each of these kinds."""
    return [len(steps) - 1 - steps[::-1].index(kind) for kind in SOME]


def test_death_at_some_steps(mortal):
    with serving(model) as served:
        steps = go_through(mortal, served.url, served, last)
    assert len(steps) > 80, steps
    print(len(steps), "steps")


@pytest.mark.slow
def test_death_at_each_step(mortal):
    with serving(model) as served:
        steps = go_through(mortal, served.url, served, lambda steps: range(len(steps)))
    kinds = {s.split()[0] for s in steps}
    assert kinds == {"open", "os.rename", "os.mkdir", "before", "after", "note", "noted", "connect"}


@pytest.mark.slow
def test_a_batch_that_dies_is_resumed_whole(mortal):
    """Three kernels, two at a time: the id of the batch goes on with all, and asks for no recorded reply again."""
    Path("csrc").mkdir()
    for name in NAMES:
        for suffix in (".cu", ".case.toml"):
            shutil.copy(TASKS[name].source.with_suffix("").with_suffix(suffix), "csrc")
    with serving(solver) as served:
        args = ["port", "csrc", "--agent", "--jobs", "2", "--arch", "sm_90a", "--seed", "7", "--base-url", served.url]
        whole = mortal.run(args)
        assert whole["code"] == 0 and len(served.requests) == 3
        expected = {n: (Path("ported") / f"{n}.py").read_text() for n in NAMES}
        count = len(whole["steps"])
        fresh()
        served.requests.clear()
        assert mortal.run(args, int(count * 0.7))["code"] == DEAD
        (batch,) = [p.parent.name for p in Path(".porter/runs").glob("*/batch.json")]
        assert mortal.run(["agent", "resume", batch, "--jobs", "2"])["code"] == 0
        assert {n: (Path("ported") / f"{n}.py").read_text() for n in NAMES} == expected
        states = [json.loads(p.read_text())["state"] for p in Path(".porter/runs").glob("*/result.json")]
        assert states == ["verified"] * 3
        asked = [kernel_of(r) for r in served.requests]
        assert set(asked) == set(NAMES) and all(asked.count(n) <= 2 for n in NAMES) and len(asked) <= 5
