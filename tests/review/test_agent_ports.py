"""A port that the agent finished, with a scripted model, under review: its lines, its run, undoing its edit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("anthropic", reason="needs the extra `agent`")
pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")

from porter.cli import main
from porter.review.attempts import edits_of, runs_about
from porter.review.changes import accept, reject
from porter.review.loaded import load
from porter.review.words import author_words
from tests.agents.messages_server import Say, script, serving
from tests.agents.test_real_verifier import RIGHT, TASK, fill


def test_the_edit_of_an_agent_is_shown_and_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("vadd4.cu", "vadd4.case.toml"):
        shutil.copy(TASK / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    monkeypatch.setattr("porter.review.decisions.reviewer", lambda folder: "Ada")
    with serving(script(Say(fill(RIGHT)))) as served:
        assert main(["port", "vadd4.cu", "--agent", "--base-url", served.url, "--arch", "sm_90a", "--seed", "7"]) == 0
    port = Path("ported/vadd4.py")
    loaded = load(port)
    region = next(r for r in loaded.regions if any(a.startswith("agent:") for a in r.authors))
    assert "0x7F7F7F7F" in loaded.port_text(region) and "agent, attempt 1" in author_words(loaded, region)
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
    assert [hole.cuda for _, hole in loaded.holes] and "__vadd4" in loaded.holes[0][1].cuda
    undone = next(r for r in loaded.regions if r.hole == 1)
    decision = loaded.decisions[undone.name]
    assert (decision.state, decision.comment, decision.by) == ("rejected", "too clever", "Ada")
