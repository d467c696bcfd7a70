"""Runs against a scripted server: each ends with the right state, message and cost."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest

from porter.agents.messages import Usage
from porter.agents.prices import price_of
from porter.model import Status, Verdict
from tests.agents.conftest import KEY
from tests.agents.messages_server import Fail, Say, call, script, text
from tests.agents.stub_verifier import FILLED, PORT, SUBJECT, StubVerifier

FILL = [
    call("replace_region", region="hole-1", code="pass"),
    call("replace_region", region="hole-2", code="out[i] = n"),
]
SOLVE = Say([*FILL, call("verify")])


def test_a_right_fill_is_verified_and_kept(agent):
    outcome, served, _ = agent(script(SOLVE))
    assert (outcome.state, outcome.ended, outcome.message) == ("verified", "done", "every check passes")
    assert outcome.text == FILLED.replace("pass  # goto", "pass")
    assert [str(k) for k in outcome.kept] == ["attempt 1: hole-1, hole-2 fixed holes"]
    assert {e.author for e in outcome.line_map} == {"agent:1"}
    assert len(served.requests) == 1 and outcome.cost == "$0.01"
    assert [v.check for v in outcome.unseen if v.status.value == "FAIL"] == []


def test_repairs_after_two_failed_compiles(agent):
    def fill(code):
        return Say([FILL[0], call("replace_region", region="hole-2", code=code), call("compile"), call("verify")])

    model = script(fill("out[i] = no_compile"), fill("out[i] = no_compile + 1"), fill("out[i] = n"))
    outcome, served, _ = agent(model)
    assert outcome.state == "verified" and outcome.spent.attempts == 3
    told = [t for n in (1, 2) for t, _ in served.results(n)]
    assert sum("PRT811 (k.py:12, k.cu:3): no" in t for t in told) >= 2
    assert [str(k) for k in outcome.kept] == [
        "attempt 1: hole-1, hole-2 fixed holes", "attempt 3: hole-1, hole-2 fixed compile",
    ]  # fmt: skip


def test_a_worse_candidate_is_rolled_back(agent):
    start = replace(SUBJECT, port=FILLED.replace("= n", "= wrong"), holes=())
    model = script(
        Say([call("replace_region", region="body:k", code="no_compile"), call("verify")]),
        Say([call("read_region", region="body:k")]),
        Say([call("give_up", reason="cannot")]),
    )
    outcome, served, _ = agent(model, subject=start)
    assert served.results(1)[1][0].startswith("not better than the best so far: rolled back")
    assert "wrong" in served.results(2)[0][0]
    assert (outcome.state, outcome.ended, outcome.text) == ("unchanged", "gave-up", start.port)


def test_what_is_not_verified_is_left_out(agent):
    model = script(Say([*FILL[:1], call("verify")]), Say([call("give_up", reason="hole 2 is too hard")]))
    outcome, _, _ = agent(model)
    assert outcome.state == "unverified" and outcome.text == PORT and "hole 2 is too hard" in outcome.message
    assert "hole(1" not in outcome.candidate


def test_a_port_that_fits_only_the_launches_seen_is_lost(agent):
    model = script(Say([FILL[0], call("replace_region", region="hole-2", code="out[i] = overfit"), call("verify")]))
    outcome, _, _ = agent(model)
    assert outcome.state == "refused-unseen" and outcome.text == PORT
    assert "unseen seeds and shapes it fails numerics" in outcome.message


def test_without_a_case_nothing_is_sent(agent):
    outcome, served, _ = agent(script(SOLVE), subject=replace(SUBJECT, has_case=False))
    assert (outcome.ended, served.requests, outcome.cost) == ("no-case", [], "$0.00")


def test_a_kernel_that_cannot_be_verified_here_ends_the_run(agent):
    class Unable(StubVerifier):
        def verify(self, text, line_map, effort):
            found = super().verify(text, line_map, effort)
            if found[2].status is Status.PASS:
                found[4] = Verdict("numerics", Status.ERROR, "the original: vabsdiff4 is not supported")
            return found

    outcome, served, _ = agent(script(SOLVE), verifier=Unable())
    assert (outcome.ended, outcome.text, len(served.requests)) == ("no-harness", PORT, 1)
    assert "cannot be verified here: the original: vabsdiff4" in outcome.message


def test_a_run_without_a_harness_asks_for_nothing(agent, tmp_path):
    outcome, served, _ = agent(script(SOLVE), verifier=StubVerifier("the original: vabsdiff4 is not supported"))
    assert (outcome.state, outcome.ended, served.requests, outcome.cost) == ("unchanged", "no-harness", [], "$0.00")
    assert outcome.message == "the kernel cannot be verified here: the original: vabsdiff4 is not supported"

    class Unable(StubVerifier):
        def verify(self, text, line_map, effort):
            found = super().verify(text, line_map, effort)
            found[4] = Verdict("numerics", Status.ERROR, "the original: boom")
            return found

    failing = replace(SUBJECT, port=FILLED.replace("= n", "= wrong"), holes=())
    verifier = Unable()
    outcome, served, _ = agent(script(SOLVE), subject=failing, verifier=verifier, path=tmp_path / "b.jsonl")
    assert (outcome.ended, served.requests, verifier.asked) == ("no-harness", [], ["verify full"])
    assert outcome.message == "the kernel cannot be verified here: the original: boom"


def test_a_partial_repair_is_kept_only_when_it_holds_with_unseen_launches(agent, tmp_path):
    """A port without holes that fails: the agent makes numerics pass, while another check goes on failing."""

    class Racy(StubVerifier):
        def verify(self, text, line_map, effort):
            found = super().verify(text, line_map, effort)
            at = [v.check for v in found].index("sanitizer")
            if found[at].status is Status.PASS:
                found[at] = Verdict("sanitizer", Status.FAIL, "a race")
            return found

    start = replace(SUBJECT, port=FILLED.replace("= n", "= wrong"), holes=())

    def model(code):
        edit = Say([call("replace_region", region="body:k", code=code), call("verify")])
        return script(edit, Say([call("give_up", reason="the race stays")]))

    verifier = Racy()
    outcome, _, _ = agent(model("out[0] = n"), subject=start, verifier=verifier)
    assert (outcome.state, outcome.ended, [k.check for k in outcome.kept]) == ("improved", "gave-up", ["numerics"])
    assert "out[0] = n" in outcome.text and verifier.asked[-1] == "verify unseen"
    assert not outcome.good  # better than it was is not verified
    assert [v.check for v in outcome.unseen if v.status is Status.FAIL] == ["sanitizer"]
    outcome, _, _ = agent(model("out[0] = overfit"), subject=start, verifier=Racy(), path=tmp_path / "b.jsonl")
    assert (outcome.state, outcome.text) == ("refused-unseen", start.port)
    assert outcome.message.endswith("with unseen seeds and shapes it is no better than it was")


def test_a_verified_port_is_left_alone_and_only_such_a_one_is_optimised(agent, tmp_path):
    done = replace(SUBJECT, port=FILLED, holes=())
    outcome, served, _ = agent(script(SOLVE), subject=done)
    assert (outcome.ended, served.requests, outcome.good) == ("done", [], True)
    outcome, served, _ = agent(script(SOLVE), subject=replace(SUBJECT, optimise=True), path=tmp_path / "b.jsonl")
    assert (outcome.ended, served.requests, outcome.good) == ("not-verified", [], False)


def test_a_port_that_optimising_leaves_as_it_was_stays_verified(agent):
    """What was faster is lost with unseen launches; the port to keep, and the verdicts on it, are those before."""
    start = replace(SUBJECT, port=FILLED.replace("= n", "= fast"), holes=(), optimise=True)
    edit = Say([call("replace_region", region="body:k", code="x = fast\ny = fast + overfit"), call("verify")])
    outcome, _, _ = agent(script(edit, Say([call("give_up", reason="enough")])), subject=start)
    assert (outcome.state, outcome.text, outcome.good) == ("refused-unseen", start.port, True)


def test_optimising_keeps_what_is_faster_and_stops_when_nothing_improves(agent):
    start = replace(SUBJECT, port=FILLED.replace("= n", "= fast"), holes=(), optimise=True)
    steps = [Say([call("replace_region", region="body:k", code="x = fast\ny = fast"), call("verify")])]
    steps += [Say([call("replace_region", region="body:k", code=f"x = fast + {n}"), call("verify")]) for n in range(9)]
    outcome, _, _ = agent(script(*steps), subject=start, patience=3)
    assert (outcome.state, outcome.ended) == ("improved", "no-improvement")
    assert [k.check for k in outcome.kept] == ["performance"] and outcome.spent.attempts == 4


# ---------------------------------------------------------------- models that misbehave


def test_a_loop_is_noticed(agent):
    outcome, served, _ = agent(lambda request, n: Say([call("check_names")]))
    assert outcome.ended == "loop" and len(served.requests) == 3 and outcome.text == PORT


def test_attempts_that_improve_nothing_end_the_run(agent):
    def model(request, n):
        return Say([FILL[0], call("replace_region", region="hole-2", code=f"out[i] = nope + {n}"), call("verify")])

    outcome, _, _ = agent(model, patience=4)
    assert (outcome.ended, outcome.spent.attempts) == ("no-improvement", 4)


@pytest.mark.parametrize(
    ("block", "raw", "said"),
    [
        (call("replace_region", region="_launch_k", code="pass"), "", "there is no region '_launch_k'"),
        (call("replace_region", region="hole-1", code="import os"), "", "refused: imports belong"),
        (call("replace_region", region="hole-1"), "", "needs 'code'"),
        (call("replace_region", region="hole-1", code=3), "", "must be a string"),
        (call("replace_region", region="hole-1", code="pass", file="/etc/passwd"), "", "has no parameter 'file'"),
        (call("verify"), '{"x": [', "not a JSON object"),
        (call("bash", command="rm -rf /"), "", "there is no tool 'bash'"),
        (call("read_exemplar", name="../../etc/passwd"), "", "there is no exemplar"),
        (call("read_region", region="/etc/passwd"), "", "there is no region"),
    ],
)
def test_bad_calls_are_answered_and_change_nothing(agent, block, raw, said):
    outcome, served, _ = agent(
        script(Say([block], raw_inputs=[raw] if raw else ()), Say([call("give_up", reason="x")]))
    )
    told, wrong = served.results(1)[0]
    assert said in told and wrong
    assert (outcome.text, outcome.ended, outcome.kept) == (PORT, "gave-up", ())


@pytest.mark.parametrize("content", [[], [text("I have no idea.")]])
def test_replies_without_a_call_are_asked_for_one_and_then_end_the_run(agent, content):
    outcome, served, _ = agent(script(Say(content)))
    assert (outcome.ended, len(served.requests)) == ("silent", 2)
    assert "Call a tool" in json.dumps(served.requests[1]["messages"][-1])
    roles = [m["role"] for m in served.requests[1]["messages"]]
    assert all(a != b for a, b in pairwise(roles))


def test_a_refusal_ends_the_run(agent):
    outcome, _, _ = agent(script(Say([text("I cannot help with that.")], stop="refusal")))
    assert (outcome.ended, outcome.message, outcome.text) == ("refusal", "the model refused the task", PORT)


def test_a_call_that_was_cut_off_is_not_run(agent):
    cut = Say([FILL[0], call("replace_region", region="hole-2", code="out[i] = 1")], stop="max_tokens")
    outcome, served, _ = agent(script(cut, Say([call("give_up", reason="x")])))
    assert [wrong for _, wrong in served.results(1)] == [False, True]
    assert "hole(2" in outcome.candidate


def test_replies_that_are_cut_off_again_and_again_end_the_run(agent):
    cut = [Say([call("read_region", region=r)], stop="max_tokens") for r in ("hole-1", "hole-2", "helpers")]
    outcome, served, _ = agent(script(*cut))
    assert (outcome.ended, len(served.requests), outcome.text) == ("cut", 3, PORT)


# ---------------------------------------------------------------- servers that misbehave


@pytest.mark.parametrize(
    ("step", "ended", "said"),
    [
        (Fail(401, "authentication_error", "invalid x-api-key"), "provider", "the key was not accepted: 401"),
        (Fail(403, "permission_error", "no access"), "provider", "the key may not use this model: 403"),
        (Fail(400, "invalid_request_error", "tools.0: bad"), "provider", "the request was not accepted: 400"),
        (Fail(400, "invalid_request_error", "prompt is too long: 9 > 8"), "context", "too long for the model"),
        (Say([text("x")], stop="model_context_window_exceeded"), "context", "too long for the model"),
    ],
)
def test_failures_that_will_not_pass_end_the_run_at_once(agent, step, ended, said):
    outcome, served, slept = agent(script(step))
    assert (outcome.ended, outcome.text, len(served.requests), slept) == (ended, PORT, 1, [])
    assert said in outcome.message and KEY not in outcome.message
    if isinstance(step, Fail):
        assert outcome.cost == "$0.00"


@pytest.mark.parametrize(
    ("step", "wait", "maybe"),
    [
        (Fail(429, "rate_limit_error", retry_after="7"), 7.0, 0),
        (Fail(500, "api_error"), 2.0, 1),
        (Fail(529, "overloaded_error"), 2.0, 1),
        (Say([text("x" * 300)], cut_after=5), 2.0, 1),
        (Say([text("x")], error_inside="overloaded_error"), 2.0, 1),
    ],
)
def test_failures_that_pass_are_tried_again(agent, step, wait, maybe):
    outcome, served, slept = agent(script(step, SOLVE))
    assert outcome.state == "verified" and slept == [wait] and len(served.requests) == 2
    assert outcome.spent.maybe_requests == maybe
    assert ("possibly charged" in outcome.cost) == bool(maybe)


def test_failures_that_stay_end_the_run_after_the_retries(agent):
    outcome, served, slept = agent(script(Fail(529, "overloaded_error", "Overloaded")), retries=3)
    assert outcome.ended == "provider" and "the model is overloaded: 529 Overloaded (4 tries)" in outcome.message
    assert slept == [2.0, 4.0, 8.0] and len(served.requests) == 4


def test_a_silent_server_is_given_up(agent):
    outcome, _, _ = agent(script(Say([text("x")], pause=2.0)), timeout=0.3, retries=1)
    assert outcome.ended == "provider" and "the connection failed" in outcome.message


# ---------------------------------------------------------------- budgets and cost


def busy(request, n):
    return Say([call("search_corpus", query=f"query {n}")], input=100, output=900, cache_read=40_000, cache_write=2_000)


def test_cost_is_that_of_the_usage_fields_to_the_cent_and_over_by_one_reply_at_most(agent):
    outcome, served, _ = agent(busy, usd=Decimal("0.10"))
    usage = Usage(100, 900, 40_000, 2_000)
    one = price_of("claude-opus-5-5").of(usage)
    assert one == Decimal("0.0364")
    assert outcome.ended == "budget" and outcome.message == "the budget of $0.10 is used up"
    assert outcome.spent.usd == one * len(served.requests) == Decimal("0.1092") and outcome.cost == "$0.11"
    assert outcome.spent.usd - one < Decimal("0.10")


def test_budgets_of_tokens_attempts_and_time(agent, tmp_path):
    outcome, served, _ = agent(busy, tokens=50_000)
    assert len(served.requests) == 2 and "50000 tokens" in outcome.message

    def wrong(request, n):
        return Say([FILL[0], call("replace_region", region="hole-2", code=f"nope({n})"), call("verify")])

    outcome, served, _ = agent(wrong, attempts=2, path=tmp_path / "a.jsonl")
    assert outcome.message == "the budget of 2 attempts is used up" and outcome.spent.attempts == 2
    outcome, served, _ = agent(busy, seconds=0.001, path=tmp_path / "b.jsonl")
    assert outcome.message == "the time of 0.001 s is used up" and len(served.requests) <= 1


# ---------------------------------------------------------------- what is written


def test_no_secret_is_written_even_when_the_server_or_the_model_repeats_it(agent, tmp_path):
    path = tmp_path / "run" / "events.jsonl"
    model = script(
        Fail(500, "api_error", f"your key {KEY} broke us"),
        Say([text(f"your key is {KEY}"), call("search_corpus", query=KEY)]),
        Say([call("give_up", reason=KEY)]),
    )
    outcome, _, _ = agent(model, path=path)
    assert outcome.ended == "gave-up" and KEY not in path.read_text()
    assert "[secret]" in path.read_text()


def test_the_record_tells_what_was_sent_and_answered(agent, tmp_path):
    path = tmp_path / "run" / "events.jsonl"
    _, served, _ = agent(script(SOLVE), path=path)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = [e["event"] for e in events]
    assert kinds == [
        "start", "verdicts", "harness", "request", "reply", "tool", "tool", "verdicts", "verdicts", "kept", "tool",
        "verdicts", "end",
    ]  # fmt: skip
    assert events[3]["system"] == [b["text"] for b in served.requests[0]["system"]]


def test_the_record_has_every_message_as_it_was_sent(agent, tmp_path):
    path = tmp_path / "run" / "events.jsonl"
    steps = [Say([]), Say([call("search_corpus", query="goto")]), Say([text("hm")]), Say([call("give_up", reason="x")])]
    _, served, _ = agent(script(*steps), path=path)
    messages: list = []
    recorded = []
    for event in map(json.loads, path.read_text().splitlines()):
        if event["event"] == "request":
            messages[event["first"] :] = event["messages"]
            recorded.append(list(messages))
    for sent, noted in zip(served.requests, recorded, strict=True):
        bare = [[{k: v for k, v in b.items() if k != "cache_control"} for b in m["content"]] for m in sent["messages"]]
        assert bare == [m["content"] for m in noted]


def test_the_prefix_does_not_change_within_a_run(agent):
    _, served, _ = agent(busy, tokens=200_000)
    assert len(served.requests) > 3
    first = served.requests[0]
    for later in served.requests[1:]:
        assert (later["system"], later["tools"]) == (first["system"], first["tools"])
        strip = [
            [{k: v for k, v in b.items() if k != "cache_control"} for b in m["content"]] for m in later["messages"]
        ]
        assert strip[0] == [
            {k: v for k, v in b.items() if k != "cache_control"} for b in first["messages"][0]["content"]
        ]


def test_stub_marks():
    verifier = StubVerifier()
    assert verifier.verify(FILLED, (), "full")[2].status.value == "PASS"
