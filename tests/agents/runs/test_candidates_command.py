"""`porter port --agent --candidates N` whole: in a git repository, with the real verifier, interrupted and resumed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from porter.cli import main
from porter.provenance.store import read_record
from porter.review.port.attempts import read_run
from tests.agents.messages_server import Say, call, serving
from tests.agents.runs.test_candidates import number_of, turn_of
from tests.agents.runs.test_workspace import git
from tests.agents.test_real_verifier import RIGHT, TASK, fill
from tests.cli.conftest import default_sigint

pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")

GIVE_UP = Say([call("give_up", reason="too hard")])


@pytest.fixture
def work(tmp_path, monkeypatch):
    for name in ("vadd4.cu", "vadd4.case.toml"):
        shutil.copy(TASK / name, tmp_path)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    return tmp_path


def command(url: str, *more: str) -> list[str]:
    return ["port", "vadd4.cu", "--agent", "--base-url", url, "--arch", "sm_90a", "--seed", "7", *more]


def model(request, n):
    if number_of(request) == 1:
        return [Say(fill("out[i] = Uint32(a[i]) + Uint32(b[i])")), GIVE_UP][turn_of(request)]
    return Say(fill(RIGHT))


def test_the_best_candidate_becomes_the_port_and_no_worktree_is_left(work, capsys):
    listed: list[str] = []

    def watched(request, n):
        listed.append(git(work, "worktree", "list"))
        return model(request, n)

    with serving(watched) as served:
        assert main([*command(served.url, "--candidates", "2"), "--output-format", "json"]) == 0
        assert len(served.requests) == 3
    (result,) = json.loads(capsys.readouterr().out)["agent"]
    assert (result["state"], result["candidate"]) == ("verified", 2)
    assert [c["state"] for c in result["candidates"]] == ["unverified", "verified"]
    assert listed[0].count("\n") == 3 and git(work, "worktree", "list").count("\n") == 1
    text = Path("ported/vadd4.py").read_text()
    assert "0x7F7F7F7F" in text
    record = read_record(Path("ported/vadd4.py"))
    assert record is not None and record.extra["agent"]["candidate"] == 2 and not record.holes
    assert "work/candidate" not in Path("ported/vadd4.port.json").read_text()  # no path of a place that is gone
    run = Path(".porter/runs") / result["run"]
    runs = [read_run(run / f"candidate-{n}.jsonl") for n in (1, 2)]
    assert [r.attempts[0].state for r in runs] == ["kept", "kept"] and "candidate-2" in runs[1].summary
    assert (run / "candidate.py").read_text() == text
    assert main(["agent", "resume", run.name]) == 0  # a finished run is only read
    assert Path("ported/vadd4.py").read_text() == text


def test_the_prompt_of_each_candidate_is_shown(work, capsys):
    assert main(["port", "vadd4.cu", "--show-prompt", "--candidates", "2", "--arch", "sm_90a"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("## Candidate 1 of 2") == shown.count("## Candidate 2 of 2") == 1


@pytest.mark.parametrize(
    ("jobs", "how"),
    [
        ("1", signal.SIGINT),
        pytest.param("1", signal.SIGKILL, marks=pytest.mark.slow),
        pytest.param("2", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_stopped_while_the_models_think_then_resumed(work, how, jobs):
    """Ctrl-C leaves no worktree; kill -9 leaves them to the resume. Neither loses a reply or touches the port."""
    if jobs == "2":  # runs in threads of a batch
        for suffix in (".cu", ".case.toml"):
            shutil.copy(f"vadd4{suffix}", f"second{suffix}")
    reached, go_on = threading.Event(), threading.Event()

    def slow(request, n):
        if number_of(request) == 2 or turn_of(request):
            reached.set()
            go_on.wait(60)
        return model(request, n)

    with serving(slow) as served:
        started = command(served.url, "--candidates", "2", "--jobs", jobs)
        started[2:2] = ["second.cu"] if jobs == "2" else []
        child = subprocess.Popen(
            [sys.executable, "-m", "porter.cli", *started], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=default_sigint,
        )  # fmt: skip
        assert reached.wait(120)
        records = [r for r in Path(".porter/runs").glob("*/candidate-1.jsonl")]
        end = time.monotonic() + 60
        while not all(b'"event":"kept"' in r.read_bytes() for r in records) and time.monotonic() < end:
            time.sleep(0.05)
        assert git(work, "worktree", "list").count("\n") > 1
        os.kill(child.pid, how)
        child.wait(60)
        assert child.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
        left = git(work, "worktree", "list").count("\n") - 1
        assert left == (0 if how == signal.SIGINT else 2)
        assert list(Path(".porter/runs").glob("*/work")) == [] or how == signal.SIGKILL
        assert "hole(1" in Path("ported/vadd4.py").read_text()
        go_on.set()
        before = len(served.requests)
        recorded = sum(r.read_bytes().count(b'"event":"reply"') for r in Path(".porter/runs").glob("*/candidate-*"))
        for run in sorted(p.parent.name for p in Path(".porter/runs").glob("*/run.json")):
            assert main(["agent", "resume", run]) == 0
        assert len(served.requests) - before == int(jobs) * 3 - recorded
    assert "0x7F7F7F7F" in Path("ported/vadd4.py").read_text()
    assert git(work, "worktree", "list").count("\n") == 1
