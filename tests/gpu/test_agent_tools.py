"""The agent's tools on measured times, below the SDK: profile, what is rolled back, and the end at the floor.

On a GPU with a bundle in PORTER_GPU_BUNDLE (see test_ports_gpu.py); without one the same code goes over counts of the
emulator, which shows that the tools fit together and nothing about time.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from porter.agents.copy_floor import at_copy_floor
from porter.agents.edit_session import EditSession
from porter.agents.loop import Run
from porter.agents.messages import Block
from porter.agents.ranking import all_good, speed_of
from porter.agents.settings import AgentSettings
from porter.agents.tools import use
from porter.model import Status, facts_of
from porter.model.facts import PerformanceFacts
from tests.gpu.bundle_verifier import BundleVerifier, session_of, status_of
from tools.gpu.manifest import Bundle, read_bundle

ONE_WARP = {"grid": "tokens", "block": "32", "shared_bytes": "0"}  # for a row of 4096 elements


def call(name: str, **inputs: str) -> Block:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": inputs}


def times_of(session: EditSession) -> PerformanceFacts:
    """What `performance` of the last verified candidate holds."""
    facts = facts_of(session.last_verdicts, PerformanceFacts)
    assert facts is not None
    return facts


@pytest.fixture
def gpu_bundle():
    from tests.gpu.test_ports_gpu import bundle_folder

    return read_bundle(bundle_folder())


@pytest.fixture
def gpu():
    from porter.verify.backends.by_name import choose

    return choose("gpu")


@pytest.mark.gpu
def test_profile_and_a_launch_that_is_right_and_slow(gpu_bundle: Bundle, gpu, tmp_path: Path) -> None:
    verifier = BundleVerifier(gpu_bundle, gpu_bundle.kernel("rms_norm"), gpu, tmp_path)
    session = session_of(verifier)
    session.open_baseline()
    assert all_good(session.best_verdicts, 0), [v.detail for v in session.best_verdicts]
    text, wrong = use(session, call("profile"))
    assert not wrong and "the port against the original: " in text, text
    measured = times_of(session)
    assert all(f"port {row.timings['graph_cold'].us['port']:.3f}; copy " in text for row in measured.rows), text
    assert measured.device == gpu.facts.name and len(measured.rows) == 4
    for row in measured.rows:
        times = row.timings["graph_cold"].us
        assert times["copy"] > 0.2 and 0.2 < times["port"] < 1e4 and row.bytes > 0
        assert row.timings["graph_cold"].ratio["port"] == pytest.approx(times["port"] / times["original"], rel=0.05)
    assert speed_of(session.last_verdicts) == pytest.approx(1 / measured.geomean)
    floor = at_copy_floor(session.best_verdicts) or "not reached"
    print(f"rms_norm: {measured.geomean:.3f} times the original; floor: {floor}")

    before = session.best.text
    assert use(session, call("replace_launch", **ONE_WARP)) == ("replaced. Call verify to check it.", False)
    answer, wrong = use(session, call("verify"))
    assert not wrong and answer.startswith("not better than the best so far"), answer
    assert status_of(session, "numerics") is Status.PASS and status_of(session, "performance") is Status.FAIL
    assert verifier.asked == ["full", "small", "full"] and session.draft.text == session.best.text == before
    slow = times_of(session)
    assert f"the port against the original: {slow.geomean:.3f}" in use(session, call("profile"))[0]
    assert slow.geomean > 1.05 * measured.geomean
    print(f"rms_norm with a warp a row: {slow.geomean:.3f} times the original")

    # the same port again: whatever was measured, it is kept only when that is beyond the noise
    best = speed_of(session.best_verdicts)
    session.edit(replace(session.draft, text=session.draft.text + "# the same\n"), "helpers")
    kept, _ = session.verify_draft()
    assert kept is (speed_of(session.last_verdicts) > 1.02 * best)
    if os.environ.get("PORTER_AGENT_RESULTS"):
        found = {"device": measured.device, "rms_norm": measured.to_json(), "rms_norm, a warp a row": slow.to_json()}
        Path(os.environ["PORTER_AGENT_RESULTS"]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


@pytest.mark.gpu
def test_at_the_measured_floor_the_run_ends_before_anything_is_asked(gpu_bundle: Bundle, gpu, tmp_path: Path) -> None:
    """The loop whole, without a provider: it raises where something would have to be asked."""
    verifier = BundleVerifier(gpu_bundle, gpu_bundle.kernel("embedding"), gpu, tmp_path)
    session = session_of(verifier)
    outcome = Run(session.subject, verifier, None, AgentSettings(), session.journal).go()
    assert (outcome.state, outcome.ended, verifier.asked) == ("unchanged", "done", ["full"]), outcome.message
    assert outcome.message.startswith("nothing to gain: ") and gpu.facts.name in outcome.message
    print(f"embedding: {outcome.message}")


# ---------------------------------------------------------------- the same code without a GPU


def test_the_tools_on_a_bundle_with_counts(tmp_path: Path) -> None:
    pytest.importorskip("clang", reason="a bundle is made where libclang is")
    pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")
    from porter.verify.backends.emulator import EmulatorBackend
    from tools.gpu.bundle import make_bundle

    bundle = make_bundle(tmp_path / "bundle", ["rms_norm"])
    (tmp_path / "drafts").mkdir()
    verifier = BundleVerifier(bundle, bundle.kernel("rms_norm"), EmulatorBackend(), tmp_path / "drafts")
    session = session_of(verifier)
    session.open_baseline()
    assert all_good(session.best_verdicts, 0), [v.detail for v in session.best_verdicts]
    answer, wrong = use(session, call("profile"))
    assert not wrong and '"counts"' in answer and times_of(session).counts and times_of(session).rows is None
    assert use(session, call("replace_launch", **ONE_WARP))[1] is False
    answer, _ = use(session, call("verify"))
    assert status_of(session, "numerics") is Status.PASS
    assert verifier.asked == ["full", "small", "full"] and speed_of(session.last_verdicts) > 0
    wrong_grid = {**ONE_WARP, "grid": "min(tokens, 33)"}  # as many rows as the case has
    assert use(session, call("replace_launch", **wrong_grid))[1] is False
    answer, _ = use(session, call("verify"))
    assert answer.startswith("not better") and "never written" in answer, answer
