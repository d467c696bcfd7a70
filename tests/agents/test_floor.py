"""Times of a GPU, as recorded on an H200: what the agent is shown of them, and when there is nothing left to gain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from porter.agents.copy_floor import CLOSE, at_copy_floor, copy_ratio, times_of
from porter.agents.ranking import all_good, rank, speed_of
from porter.agents.regions import draft_of, replace_code
from porter.model import Status, Verdict, facts_of
from porter.model.facts import CountedLaunch, PerformanceFacts, TimedPoint, TimingFacts
from tests.agents.messages_server import Say, call, script
from tests.agents.recorded_verifier import RecordedVerifier, measured
from tests.agents.stub_verifier import FILLED, SUBJECT

START = replace(SUBJECT, port=FILLED, holes=(), optimise=True)


def performance(name: str) -> PerformanceFacts:
    facts = facts_of(measured()[name], PerformanceFacts)
    assert facts is not None
    return facts


def edited(code: str) -> str:
    """The start with another body, as replace_region makes it."""
    return replace_code(draft_of(START.port, True), "body:k", code).text


@pytest.fixture
def optimise(agent):
    """Run with the record of one kernel for the start, and of others for candidates (body=kernel)."""

    def run(kernel: str, *steps: Say, candidates: dict[str, str] | None = None):
        verifier = RecordedVerifier({START.port: kernel, **{edited(c): k for c, k in (candidates or {}).items()}})
        outcome, served, _ = agent(script(*steps), subject=START, verifier=verifier)
        return outcome, served, verifier

    return run


def test_the_record_is_of_a_gpu():
    assert len(measured()) == 25
    assert all(performance(name).device == "NVIDIA H200" for name in measured())
    assert all(all_good(verdicts, 0) for verdicts in measured().values())


def test_at_the_floor_nothing_is_asked(optimise):
    """embedding takes at most 0.959 times the time of a copy of the same bytes, at all of its points."""
    outcome, served, verifier = optimise("embedding", Say([call("give_up", reason="x")]))
    assert (outcome.state, outcome.ended, served.requests) == ("unchanged", "done", [])
    floor = "0.959 times the time of a copy of the same bytes, at most, over 3 points on NVIDIA H200"
    assert outcome.message == f"nothing to gain: {floor}"
    assert outcome.cost == "$0.00" and verifier.asked == ["full"]


@pytest.mark.parametrize("kernel", ["silu_and_mul", "moe_sum", "moe_unpermute", "softmax"])
def test_above_the_floor_at_one_point_the_model_is_asked(optimise, kernel):
    """moe_sum is at it at 1 of 3 points, moe_unpermute below it at 1, silu_and_mul 1.03 times at its best."""
    outcome, served, _ = optimise(kernel, Say([call("give_up", reason="nothing to try")]))
    assert (outcome.ended, len(served.requests)) == ("gave-up", 1)


def test_which_recorded_ports_are_at_the_floor():
    found = {name for name in measured() if at_copy_floor(measured()[name])}
    by_hand = set()
    for name in measured():
        times = [row.timings["graph_cold"].us for row in performance(name).rows]
        if all(t["port"] <= CLOSE * t["copy"] for t in times):
            by_hand.add(name)
    assert found == by_hand == {"embedding"}


def attempt(code: str) -> Say:
    return Say([call("replace_region", region="body:k", code=code), call("verify")])


def test_the_run_ends_when_what_was_kept_is_at_the_floor(optimise):
    """0.978 times the original's time (embedding's record) is more than 2 % better than 1.024 (moe_unpermute's)."""
    outcome, served, verifier = optimise("moe_unpermute", attempt("out[0] = n"), candidates={"out[0] = n": "embedding"})
    assert (outcome.state, outcome.ended, len(served.requests)) == ("improved", "done", 1)
    assert outcome.message.startswith("nothing to gain: 0.959 times")
    assert [k.check for k in outcome.kept] == ["performance"] and verifier.asked == ["full", "small", "full", "unseen"]


def test_less_than_the_noise_is_rolled_back(optimise):
    """0.987 (gelu_tanh_and_mul's record) against 0.995 (moe_sum's) is within 2 %."""
    steps = [attempt("out[0] = n"), Say([call("profile")]), Say([call("give_up", reason="x")])]
    outcome, served, _ = optimise("moe_sum", *steps, candidates={"out[0] = n": "gelu_tanh_and_mul"})
    assert (outcome.state, outcome.kept) == ("unchanged", ())
    assert "the port against the original: 0.987" in served.results(2)[0][0]  # of the last candidate, kept or not


def test_every_record_is_told_in_few_words_also_what_was_not_timed():
    for name in measured():
        lines = times_of(performance(name))
        assert len(lines) == len(performance(name).rows) and max(map(len, lines)) < 300
    untimed = PerformanceFacts(rows=(TimedPoint(sizes={"n": 3}, error="no memory"),))
    assert times_of(untimed) == ["n=3: not timed: no memory"]


def test_counts_never_reach_a_floor():
    facts = PerformanceFacts(counts=(CountedLaunch(port={"sectors": 1}),))
    counts = Verdict("performance", Status.SKIP, "needs a GPU", (), facts)
    assert at_copy_floor((counts,)) == "" == at_copy_floor(())
    alone = TimedPoint(timings={"graph_cold": TimingFacts(us={"port": 1.0})})
    assert copy_ratio(TimedPoint()) is None and copy_ratio(alone) is None
    rows = (*performance("embedding").rows, TimedPoint(error="no memory"))
    untimed = replace(counts, facts=PerformanceFacts(rows=rows))
    assert at_copy_floor((untimed,)) == ""


def test_the_rank_of_measured_ports_is_by_their_times():
    ranks = sorted(measured(), key=lambda n: speed_of(measured()[n]))
    assert ranks == sorted(measured(), key=lambda n: -performance(n).geomean)
    fast, slow = rank(measured()["topk_softmax_general"], 0), rank(measured()["moe_dispatch"], 0)
    assert fast.above(slow) and not slow.above(fast)


def test_profile_shows_the_measured_times(optimise):
    outcome, served, _ = optimise("rms_norm", Say([call("profile")]), Say([call("give_up", reason="x")]))
    ((text, wrong),) = served.results(1)
    facts = performance("rms_norm")
    assert not wrong and f"the port against the original: {facts.geomean:.3f} (lower is better)" in text
    assert "NVIDIA H200" in text and "<__nv_bfloat16, 8> tokens=1 hidden=4096: original " in text
    assert all(f"port {row.timings['graph_cold'].us['port']:.3f}; copy " in text for row in facts.rows)
    assert outcome.ended == "gave-up"
