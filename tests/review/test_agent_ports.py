"""A port that the agent finished, with a scripted model, under review: its lines, its run, undoing its edit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("anthropic", reason="needs the extra `agent`")
pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")

from porter.cli import main
from porter.review.descriptions import describe_author
from porter.review.port.actions import accept, reject
from porter.review.port.attempts import edits_of, read_run, runs_about
from porter.review.port.reviewed_port import load
from tests.agents.messages_server import Say, script, serving
from tests.agents.test_real_verifier import RIGHT, TASK, fill


def test_the_edit_of_an_agent_is_shown_and_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("vadd4.cu", "vadd4.case.toml"):
        shutil.copy(TASK / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    monkeypatch.setattr("porter.review.port.decisions.reviewer", lambda folder: "Ada")
    with serving(script(Say(fill(RIGHT)))) as served:
        assert main(["port", "vadd4.cu", "--agent", "--base-url", served.url, "--arch", "sm_90a", "--seed", "7"]) == 0
    port = Path("ported/vadd4.py")
    loaded = load(port)
    region = next(r for r in loaded.regions if any(a.startswith("agent:") for a in r.authors))
    assert "0x7F7F7F7F" in loaded.port_text(region) and "agent, attempt 1" in describe_author(loaded, region)
    assert loaded.verified and "__vadd4" in loaded.cuda_text(region)

    (run,) = runs_about(loaded)
    (attempt,) = run.attempts
    assert (attempt.number, attempt.state, attempt.check, attempt.regions) == (1, "kept", "holes", ("hole-1",))
    assert [call.split()[0] for call in attempt.calls] == ["replace_region:", "verify:"]
    assert "0x7F7F7F7F" in edits_of(attempt) and run.cost.startswith(("$", "<$"))
    assert run.ended.startswith("verified (done)")

    accept(loaded, region)
    loaded = reject(load(port), region, "too clever")
    text = port.read_text()
    assert "0x7F7F7F7F" not in text and "runtime.hole(1," in text and "PRT963" not in text
    assert [hole.cuda for _, hole in loaded.holes] and "add_bytes" in loaded.holes[0][1].cuda
    undone = next(r for r in loaded.regions if r.hole == 1)
    decision = loaded.decisions[undone.name]
    assert (decision.state, decision.comment, decision.by) == ("rejected", "too clever", "Ada")


def test_the_cost_of_a_run_is_that_of_each_reply(tmp_path: Path):
    """A model whose long prompts cost more, in short ones; an answer that broke off; a price of the user's own."""
    usage = {"input": 60_000, "output": 0, "cache_read": 0, "cache_write": 0}
    reply = {"event": "reply", "reply": {"content": [], "stop": "end_turn", "usage": usage}}
    broken = {"event": "failed", "kind": "connection", "message": "gone", "usage": usage}
    path = tmp_path / "events.jsonl"

    def cost_of(model: str, *events: dict[str, object]) -> str:
        rows = [{"event": "start", "kernel": "k", "model": model}, *events]
        path.write_text("".join(json.dumps({"n": n, "t": 0, **row}) + "\n" for n, row in enumerate(rows)))
        return read_run(path).cost

    assert cost_of("claude-haiku-5-5", *[reply] * 10) == "$0.06"  # ten times 60,000 tokens at $0.10 a million
    maybe = "and 1 unanswered request possibly charged ($0.01 known)"
    assert cost_of("claude-haiku-5-5", reply, broken) == f"$0.01, {maybe}"
    assert cost_of("mine", reply) == cost_of("claude-haiku-5-5") == ""
    prices = {"mine": {"input": "10", "output": 1, "cache_write": 1, "cache_read": 1}}
    (tmp_path / "run.json").write_text(json.dumps({"settings": {"prices": prices}}))
    assert cost_of("mine", reply) == "$0.60"
