"""Every way in which a run ends: its state, its message and its cost, exactly; and the same again from the record."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from porter.agents.loop import Run
from porter.agents.record import Journal
from tests.agents.conftest import KEY
from tests.agents.messages_server import Fail, Say, Step, call, script, text
from tests.agents.stub_verifier import FILLED, PORT, SUBJECT, StubVerifier

FILL = [
    call("replace_region", region="hole-1", code="pass"),
    call("replace_region", region="hole-2", code="out[i] = n"),
]
SOLVE = Say([*FILL, call("verify")])
GIVE_UP = Say([call("give_up", reason="too hard")])
ONE = Decimal("0.006")  # of a reply: 1000 tokens in at $4, 100 out at $20 for a million, claude-opus-5-5
VERIFIED = ("verified", "done", "every check passes")
GAVE_UP = ("unchanged", "gave-up", "the model gave up: too hard")


def fill(code: str) -> Say:
    return Say([FILL[0], call("replace_region", region="hole-2", code=code), call("compile"), call("verify")])


def try_out(code: str) -> Say:
    return Say([call("replace_region", region="hole-2", code=code), call("verify")])


@dataclass(frozen=True)
class Ending:
    """A script and what must come of it. `maybe`: USD known of replies that broke off."""

    name: str
    steps: tuple[Step, ...]
    end: tuple[str, str, str]  # state, ended, message
    usd: Decimal
    cost: str
    requests: int
    maybe: Decimal = Decimal(0)
    slept: tuple[float, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)


UNANSWERED = "and 1 unanswered request possibly charged"
BAD = [
    ("malformed input", Say([call("verify")], raw_inputs=['{"x": [']), "is not a JSON object"),
    ("input of the wrong type", Say([call("replace_region", region="hole-1", code=3)]), "must be a string"),
    ("a parameter too many", Say([call("verify", fast=True)]), "has no parameter 'fast'"),
    ("a parameter too few", Say([call("read_region")]), "needs 'region'"),
    ("an unknown tool", Say([call("bash", command="ls")]), "there is no tool 'bash'"),
    ("an edit outside its region", Say([call("replace_region", region="_launch_k", code="pass")]), "no region"),
    ("an edit that leaves its block", Say([call("replace_region", region="hole-1", code="else:\n    x")]), "refused"),
    ("an import in a body", Say([call("replace_region", region="hole-1", code="import os")]), "refused: imports"),
]
ENDINGS = [
    Ending("right", (SOLVE,), VERIFIED, ONE, "$0.01", 1),
    Ending(
        "repairs after two failed compiles",
        (fill("out[i] = no_compile"), fill("out[i] = no_compile + 1"), fill("out[i] = n")),
        VERIFIED,
        3 * ONE,
        "$0.02",
        3,
    ),
    Ending(
        "loops",
        (Say([call("check_names")]),),
        ("unchanged", "loop", "the model called check_names 3 times with the same input and result"),
        3 * ONE,
        "$0.02",
        3,
    ),
    Ending("gives up", (GIVE_UP,), GAVE_UP, ONE, "$0.01", 1),
    *(Ending(name, (step, GIVE_UP), GAVE_UP, 2 * ONE, "$0.01", 2) for name, step, _ in BAD),
    Ending("an empty reply", (Say([]), SOLVE), VERIFIED, 2 * ONE, "$0.01", 2),
    Ending(
        "empty replies", (Say([]),), ("unchanged", "silent", "2 replies in a row called no tool"), 2 * ONE, "$0.01", 2
    ),
    Ending(
        "words only",
        (Say([text("hm")]),),
        ("unchanged", "silent", "2 replies in a row called no tool"),
        2 * ONE,
        "$0.01",
        2,
    ),
    Ending(
        "refusal",
        (Say([text("no")], stop="refusal"),),
        ("unchanged", "refusal", "the model refused the task"),
        ONE,
        "$0.01",
        1,
    ),
    Ending(
        "refusal without a word",
        (Say([], stop="refusal", output=1),),
        ("unchanged", "refusal", "the model refused the task"),
        Decimal("0.00402"),
        "<$0.01",
        1,
    ),
    Ending(
        "refusal after something was filled in",
        (Say([FILL[0], call("verify")]), Say([], stop="refusal")),
        (
            "unverified",
            "refusal",
            "the model refused the task; what was filled in is not verified and is left out of the port",
        ),
        2 * ONE,
        "$0.01",
        2,
    ),
    Ending(
        "cut off once",
        (Say([*FILL, call("read_region", region="port")], stop="max_tokens"), Say([call("verify")])),
        VERIFIED,
        2 * ONE,
        "$0.01",
        2,
    ),
    Ending(
        "cut off in words after whole calls",
        (Say([*FILL, call("verify"), text("now I")], stop="max_tokens"),),
        VERIFIED,
        ONE,
        "$0.01",
        1,
    ),
    Ending(
        "cut off inside an input",
        (
            Say(
                [*FILL, call("replace_region")],
                stop="max_tokens",
                raw_inputs=[
                    '{"region": "hole-1", "code": "pass"}',
                    '{"region": "hole-2", "code": "out[i] = n"}',
                    '{"region": "ho',
                ],
            ),
            Say([call("verify")]),
        ),
        VERIFIED,
        2 * ONE,
        "$0.01",
        2,
    ),
    Ending(
        "cut off again and again",
        tuple(Say([call("read_region", region=r)], stop="max_tokens") for r in ("hole-1", "hole-2", "port")),
        ("unchanged", "cut", "3 replies in a row were cut off at 16000 tokens"),
        3 * ONE,
        "$0.02",
        3,
    ),
    Ending(
        "context too long, said by the server",
        (Fail(400, "invalid_request_error", "prompt is too long: 9 > 8"),),
        ("unchanged", "context", "the conversation is too long for the model: 400 prompt is too long: 9 > 8"),
        Decimal(0),
        "$0.00",
        1,
    ),
    Ending(
        "context too long, found on the way",
        (Say([text("x")], stop="model_context_window_exceeded"),),
        ("unchanged", "context", "the conversation is too long for the model"),
        ONE,
        "$0.01",
        1,
    ),
    Ending(
        "401",
        (Fail(401, "authentication_error", "invalid key"),),
        ("unchanged", "provider", "the key was not accepted: 401 invalid key"),
        Decimal(0),
        "$0.00",
        1,
    ),
    Ending(
        "403",
        (Fail(403, "permission_error", "no access"),),
        ("unchanged", "provider", "the key may not use this model: 403 no access"),
        Decimal(0),
        "$0.00",
        1,
    ),
    Ending(
        "404",
        (Fail(404, "not_found_error", "model: x"),),
        ("unchanged", "provider", "the request was not accepted: 404 model: x"),
        Decimal(0),
        "$0.00",
        1,
    ),
    Ending(
        "429 with retry-after",
        (Fail(429, "rate_limit_error", retry_after="7"), SOLVE),
        VERIFIED,
        ONE,
        "$0.01",
        2,
        slept=(7.0,),
    ),
    Ending("429 without retry-after", (Fail(429, "rate_limit_error"), SOLVE), VERIFIED, ONE, "$0.01", 2, slept=(2.0,)),
    Ending(
        "429 with a long retry-after",
        (Fail(429, "rate_limit_error", "slow down", retry_after="300"),),
        ("unchanged", "provider", "too many requests: 429 slow down; the server asks to wait 300 s"),
        Decimal(0),
        "$0.00",
        1,
    ),
    Ending("500", (Fail(500, "api_error"), SOLVE), VERIFIED, ONE, f"$0.01, {UNANSWERED}", 2, slept=(2.0,)),
    Ending(
        "529, then 500",
        (Fail(529, "overloaded_error"), Fail(500, "api_error"), SOLVE),
        VERIFIED,
        ONE,
        "$0.01, and 2 unanswered requests possibly charged",
        3,
        slept=(2.0, 4.0),
    ),
    Ending(
        "529 for good",
        (Fail(529, "overloaded_error", "Overloaded"),),
        ("unchanged", "provider", "the model is overloaded: 529 Overloaded (3 tries)"),
        Decimal(0),
        "$0.00, and 3 unanswered requests possibly charged",
        3,
        slept=(2.0, 4.0),
        settings={"retries": 2},
    ),
    Ending(
        "disconnect mid-stream",
        (Say([text("x" * 300)], cut_after=5, cache_write=2000), SOLVE),
        VERIFIED,
        ONE,
        f"$0.01, {UNANSWERED} ($0.01 known)",
        2,
        maybe=Decimal("0.01402"),
        slept=(2.0,),
    ),
    Ending(
        "an error mid-stream",
        (Say([text("x")], error_inside="overloaded_error"), SOLVE),
        VERIFIED,
        ONE,
        f"$0.01, {UNANSWERED} (<$0.01 known)",
        2,
        maybe=Decimal("0.00402"),
        slept=(2.0,),
    ),
    Ending(
        "a slow stream",
        (Say([text("slow " * 20), *FILL, call("verify")], pause=0.02),),
        VERIFIED,
        ONE,
        "$0.01",
        1,
        settings={"timeout": 1.0},
    ),
    Ending(
        "a silent server",
        (Say([text("x")], pause=1.0),),
        ("unchanged", "provider", "the connection failed: no data arrived for 0.3 s (2 tries)"),
        Decimal(0),
        "$0.00, and 2 unanswered requests possibly charged ($0.01 known)",
        2,
        maybe=Decimal("0.00804"),
        slept=(2.0,),
        settings={"timeout": 0.3, "retries": 1},
    ),
    Ending(
        "nothing improves",
        tuple(try_out(f"out[i] = nope + {n}") for n in range(9)),
        ("unchanged", "no-improvement", "3 attempts in a row improved nothing"),
        3 * ONE,
        "$0.02",
        3,
        settings={"patience": 3},
    ),
    Ending(
        "attempts",
        tuple(try_out(f"out[i] = nope + {n}") for n in range(9)),
        ("unchanged", "budget", "the budget of 2 attempts is used up"),
        2 * ONE,
        "$0.01",
        2,
        settings={"attempts": 2},
    ),
    Ending(
        "dollars",
        tuple(Say([call("search_corpus", query=f"q{n}")]) for n in range(9)),
        ("unchanged", "budget", "the budget of $0.01 is used up"),
        2 * ONE,
        "$0.01",
        2,
        settings={"usd": Decimal("0.01")},
    ),
    Ending(
        "dollars, of replies that broke off",
        (Say([text("x" * 300)], cut_after=5, input=3000),),
        ("unchanged", "budget", "the budget of $0.02 is used up"),
        Decimal(0),
        "$0.00, and 2 unanswered requests possibly charged ($0.02 known)",
        2,
        maybe=Decimal("0.02404"),
        slept=(2.0,),
        settings={"usd": Decimal("0.02")},
    ),
    Ending(
        "tokens",
        tuple(Say([call("search_corpus", query=f"q{n}")]) for n in range(9)),
        ("unchanged", "budget", "the budget of 2500 tokens is used up"),
        3 * ONE,
        "$0.02",
        3,
        settings={"tokens": 2500},
    ),
    Ending(
        "tokens, of replies that broke off",
        (Say([text("x" * 300)], cut_after=5, input=3000),),
        ("unchanged", "budget", "the budget of 4000 tokens is used up"),
        Decimal(0),
        "$0.00, and 2 unanswered requests possibly charged ($0.02 known)",
        2,
        maybe=Decimal("0.02404"),
        slept=(2.0,),
        settings={"tokens": 4000},
    ),
    Ending(
        "a price that is not known",
        (SOLVE,),
        VERIFIED,
        Decimal(0),
        "price of model-x unknown",
        1,
        settings={"model": "model-x", "usd": None, "tokens": 9000},
    ),
    Ending(
        "every kind of token",
        (Say([*FILL, call("verify")], input=123, output=456, cache_read=78_901, cache_write=2_345),),
        VERIFIED,
        Decimal("0.0371172"),
        "$0.04",
        1,
    ),
]


@pytest.mark.parametrize("ending", ENDINGS, ids=[e.name for e in ENDINGS])
def test_state_message_and_cost(agent, tmp_path, ending):
    path = tmp_path / "events.jsonl"
    outcome, served, slept = agent(script(*ending.steps), path=path, **ending.settings)
    assert (outcome.state, outcome.ended, outcome.message) == ending.end
    assert (outcome.spent.usd, outcome.spent.maybe, outcome.cost) == (ending.usd, ending.maybe, ending.cost)
    assert len(served.requests) == ending.requests and tuple(slept) == ending.slept
    if outcome.state == "verified":
        assert outcome.text == FILLED.replace("pass  # goto", "pass")
    else:
        assert outcome.text == PORT
    journal = Journal(path, [KEY])
    again = Run(SUBJECT, StubVerifier(), None, outcome.settings, journal, sleep=None).go()
    journal.close()
    for name in ("state", "ended", "message", "cost", "text", "kept", "candidate", "line_map"):
        assert getattr(again, name) == getattr(outcome, name), name


@pytest.mark.parametrize(("step", "said"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_call_is_answered_as_an_error(agent, step, said):
    _, served, _ = agent(script(step, GIVE_UP))
    ((told, wrong),) = served.results(1)
    assert wrong and said in told, told


def test_what_a_model_thinks_goes_back_to_it_unchanged(agent):
    """The API wants the blocks of a turn that calls tools as they were, signature and all."""
    thought = [
        {"type": "thinking", "thinking": "let me see " * 20, "signature": "c2lnbmF0dXJl"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
    ]
    outcome, served, _ = agent(script(Say([*thought, call("read_region", region="port")]), SOLVE))
    assert outcome.state == "verified"
    assert served.requests[1]["messages"][1]["content"][:2] == thought
