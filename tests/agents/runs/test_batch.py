"""Several kernels at once: one pace, one table, and a batch that is resumed as a whole."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from porter.agents.limiter import Limiter
from porter.agents.loop import Run
from porter.agents.providers import Connection, connect
from porter.agents.record import Journal
from porter.agents.settings import AgentSettings
from porter.cli import main
from tests.agents.messages_server import Fail, Say, call, serving
from tests.agents.runs.test_endings import GIVE_UP, SOLVE
from tests.agents.runs.test_eval import TASKS
from tests.agents.solutions import SOLUTIONS
from tests.agents.stub_verifier import SUBJECT, StubVerifier

NAMES = ("packed_add_u8", "goto_loop", "reference_result")


def test_the_limiter_keeps_the_pace_of_all_threads_together():
    now = [0.0]
    lock = threading.Lock()

    def sleep(seconds):
        with lock:
            now[0] += seconds

    limiter = Limiter(3, clock=lambda: now[0], sleep=sleep)
    threads = [threading.Thread(target=lambda: [limiter.wait() for _ in range(3)]) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    times = sorted(limiter.sent)
    assert now[0] >= 120 and len([t for t in times if t > now[0] - 60]) <= 3
    limiter.hold(50)
    before = now[0]
    limiter.wait()
    assert now[0] >= before + 50


def test_a_limiter_without_a_limit_does_not_wait():
    start = time.monotonic()
    limiter = Limiter()
    for _ in range(100):
        limiter.wait()
    assert time.monotonic() - start < 1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pytest.importorskip("anthropic", reason="needs the extra `agent`")
    pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")
    (tmp_path / "csrc").mkdir()
    for name in NAMES:
        for suffix in (".cu", ".case.toml"):
            text = (TASKS[name].source.parent / f"{name}{suffix}").read_text()
            (tmp_path / "csrc" / f"{name}{suffix}").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    monkeypatch.setattr(
        "porter.agents.runs.session.PortVerifier", lambda *args: StubVerifier()
    )  # for speed: it is not about answers
    return tmp_path


def kernel_of(request) -> str:
    return re.search(r"# Kernel `(\w+)`", request["messages"][0]["content"][0]["text"])[1]


def solver(request, number):
    name = kernel_of(request)
    return Say([*(call("replace_region", region=r, code=c) for r, c in SOLUTIONS[name].items()), call("verify")])


def test_a_folder_at_once_then_resumed(folder, capsys):
    def broken(request, number):
        name = kernel_of(request)
        return Fail(401, "authentication_error") if name == "goto_loop" else solver(request, number)

    with serving(broken) as served:
        args = ["port", "csrc", "--agent", "--jobs", "2", "--arch", "sm_90a", "--base-url", served.url]
        assert main([*args, "--output-format", "json"]) == 1
        runs = {r["kernel"]: r for r in json.loads(capsys.readouterr().out)["agent"]}
        assert {k: r["state"] for k, r in runs.items()} == {
            "packed_add_u8": "verified", "goto_loop": "unchanged", "reference_result": "verified",
        }  # fmt: skip
        assert len(served.requests) == 3
    (batch,) = [p.parent.name for p in Path(".porter/runs").glob("*/batch.json")]
    # the run of goto_loop is put back to where it would be after a crash before its first request
    run = Path(".porter/runs") / runs["goto_loop"]["run"]
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    (run / "events.jsonl").write_text("".join(line for line in lines if '"event":"start"' in line))
    with serving(solver) as served:
        for p in Path(".porter/runs").glob("*/run.json"):
            value = json.loads(p.read_text())
            value["settings"]["base_url"] = served.url
            p.write_text(json.dumps(value))
        assert main(["agent", "resume", batch, "--jobs", "2"]) == 0
        assert len(served.requests) == 1  # the two others have their replies on record
    table = capsys.readouterr().out
    assert all(re.search(rf"{name}\s+verified", table) for name in NAMES)
    assert all("hole(" not in (Path("ported") / f"{name}.py").read_text() for name in NAMES)


def test_one_that_cannot_be_resumed_does_not_hold_up_the_rest(folder, capsys):
    """Its source has changed, another's record is gone: both are named, and what can be finished is."""
    with serving(lambda request, number: Fail(401, "authentication_error")) as served:
        main(["port", "csrc", "--agent", "--jobs", "1", "--arch", "sm_90a", "--base-url", served.url])
    runs = {json.loads(p.read_text())["kernel"]: p.parent for p in Path(".porter/runs").glob("*/run.json")}
    (batch,) = [p.parent.name for p in Path(".porter/runs").glob("*/batch.json")]
    with Path("csrc/goto_loop.cu").open("a") as source:
        source.write("// changed\n")
    (runs["reference_result"] / "run.json").write_text("{")
    (runs["reference_result"] / "result.json").write_text("[]")
    with serving(solver) as served:
        path = runs["packed_add_u8"] / "run.json"
        path.write_text(path.read_text().replace('"base_url": "', f'"base_url": "{served.url}", "was": "'))
        capsys.readouterr()
        assert main(["agent", "resume", batch, "--output-format", "json"]) == 2
        assert len(served.requests) == 1
    out = json.loads(capsys.readouterr().out)
    assert [(r["kernel"], r["state"]) for r in out["agent"]] == [("packed_add_u8", "verified")]
    assert [d["code"] for d in out["diagnostics"]] == ["PRT926", "PRT926"]
    assert "hole(" not in Path("ported/packed_add_u8.py").read_text()
    assert main(["agent", "resume", batch]) == 2
    assert "goto_loop.cu changed since" in capsys.readouterr().err
    assert main(["agent", "list"]) == 0
    listed = capsys.readouterr().out
    assert "verified  " in listed and "result.json cannot be read" in listed and f"{batch}  batch" in listed


def test_a_server_that_asks_one_run_to_wait_is_left_alone_by_all(tmp_path):
    """429 for one kernel holds the requests of the other for as long as the server said."""
    pytest.importorskip("anthropic", reason="needs the extra `agent`")
    times: dict[str, list[float]] = {"a": [], "b": []}
    lock = threading.Lock()

    def model(request, number):
        name = kernel_of(request)
        with lock:
            times[name].append(time.monotonic())
        turn = sum(m["role"] == "assistant" for m in request["messages"])
        if name == "a":
            return Fail(429, "rate_limit_error", retry_after="1") if len(times["a"]) == 1 else SOLVE
        return Say([call("search_corpus", query=f"word {turn}")]) if time.monotonic() < end else GIVE_UP

    with serving(model) as served:
        provider = connect("anthropic_messages", Connection("sk-test-0123456789", served.url))
        limiter = Limiter()

        def run(name):
            journal = Journal(tmp_path / f"{name}.jsonl")
            Run(replace(SUBJECT, kernel=name), StubVerifier(), provider, AgentSettings(), journal, limiter).go()
            journal.close()

        end = time.monotonic() + 3
        threads = [threading.Thread(target=run, args=(name,)) for name in "ba"]
        threads[0].start()
        while len(times["b"]) < 3:
            time.sleep(0.005)
        threads[1].start()
        for thread in threads:
            thread.join()
    told = times["a"][0]
    before = [t for t in times["b"] if t < told]
    held = [t for t in times["b"] if told + 0.2 < t < told + 1]  # 0.2 s: what was under way, and the way of the answer
    after = [t for t in times["b"] if t >= told + 1]
    assert len(before) >= 3 and not held and after and times["a"][1] >= told + 1
