"""Several candidates of one kernel at once: one budget, one pace, a record each, the best kept, all to be resumed."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pytest

from porter.agents.budget import Spent
from porter.agents.limiter import Limiter
from porter.agents.loop import Outcome
from porter.agents.messages import ModelRequest, Usage
from porter.agents.providers import Connection, connect
from porter.agents.ranking import Rank
from porter.agents.record import Journal
from porter.agents.runs.candidates import Candidates, choose, together
from porter.agents.runs.run_store import RunFolder
from porter.agents.settings import AgentSettings, load_settings
from porter.agents.shared_budget import Cancelled, Most, SharedBudget, most_of
from porter.config import PortConfig
from porter.model import PorterError, Status, Verdict
from porter.model.facts import ResourcesFacts, UsedResources
from tests.agents.conftest import KEY
from tests.agents.messages_server import Fail, Say, call, serving
from tests.agents.stub_verifier import FILLED, PORT, SUBJECT, StubVerifier

pytest.importorskip("anthropic", reason="needs the extra `agent`")


@dataclass
class PlacedBench(StubVerifier):
    """A stub that knows where its drafts would go. `asked` is of all candidates together."""

    asked: list
    folder: Path | None = None
    says: str = ""


def number_of(request) -> int:
    return int(re.search(r"## Candidate (\d+) of \d+", request["messages"][0]["content"][0]["text"])[1])


def turn_of(request) -> int:
    return sum(m["role"] == "assistant" for m in request["messages"])


def scripts(**by_number):
    """A model for each candidate: `_1=[steps]`; the last step again and again. Depends on the conversation alone."""

    def model(request, n):
        steps = by_number[f"_{number_of(request)}"]
        return steps[min(turn_of(request), len(steps) - 1)]

    return model


def fill(one, two):
    return [call("replace_region", region=f"hole-{n}", code=c) for n, c in ((1, one), (2, two)) if c] + [call("verify")]


GIVE_UP = Say([call("give_up", reason="too hard")])


@pytest.fixture
def kernel(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "k.cu").write_text("__global__ void k() {}\n")
    (tmp_path / "src" / "k.case.toml").write_text("schema = 1\n")
    return tmp_path


def candidates(root, url, count=3, limiter=None, provider=True, asked=None, name="run", stop=None, **changes):
    settings = replace(AgentSettings(usd=Decimal(5)), candidates=count, **changes)
    path = root / "runs" / name
    path.mkdir(parents=True, exist_ok=True)
    files = [root / "src" / "k.cu", root / "src" / "k.case.toml"]
    folder = RunFolder(path, files[0], "", "", "k", root / "ported" / "k.py", PORT, False, PortConfig(), settings)
    who = connect("anthropic_messages", Connection(KEY, url)) if provider else None
    verifier = PlacedBench(asked if asked is not None else [])
    return Candidates(
        folder,
        SUBJECT,
        verifier,
        files,
        who,
        (KEY,),
        limiter or Limiter(),
        lambda line: None,
        stop or threading.Event(),
    )


def events_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---------------------------------------------------------------- the best is kept


def test_each_candidate_has_its_place_and_record_and_the_best_is_kept(kernel):
    seen: dict[int, str] = {}
    model = scripts(
        _1=[GIVE_UP],
        _2=[Say(fill("pass", "out[i] = wrong")), Say(fill("", "out[i] = n"))],
        _3=[Say(fill("pass", "")), GIVE_UP],
    )

    def watched(request, n):
        places = sorted((kernel / "runs" / "run" / "work").glob("*/ported/k.py"))
        assert len(places) == 3 and (places[0].parents[1] / "src" / "k.case.toml").is_file()
        seen[number_of(request), turn_of(request)] = places[number_of(request) - 1].read_text()
        return model(request, n)

    asked: list = []
    with serving(watched) as served:
        outcome = candidates(kernel, served.url, asked=asked).go()
    assert (outcome.state, outcome.chosen) == ("verified", 2)
    assert outcome.message == "candidate 2 of 3: every check passes"
    assert outcome.text == FILLED.replace("pass  # goto", "pass")
    assert [o.state for o in outcome.candidates] == ["unchanged", "verified", "unverified"]
    assert outcome.spent.replies == len(served.requests) == 5
    assert outcome.spent.usd == sum(o.spent.usd for o in outcome.candidates)
    assert seen[1, 0] == seen[2, 0] == PORT and "wrong" in seen[2, 1] and "hole(1" not in seen[3, 1]
    run = kernel / "runs" / "run"
    assert sorted(p.name for p in run.iterdir()) == ["candidate-1.jsonl", "candidate-2.jsonl", "candidate-3.jsonl"]
    assert [e["event"] for e in events_of(run / "candidate-1.jsonl")][-3:] == ["reply", "tool", "end"]
    assert not (kernel / "ported").exists()  # what is kept is written by the caller, in one step
    assert asked.count("verify full") == 2  # the port that all start from is verified once


OPEN = {1: "runtime.hole(1,", 2: "runtime.hole(1, runtime.hole(2,"}


def outcome(state="verified", speed=0.0, registers=0, usd="0", holes="", steps=(1,)):
    used = ResourcesFacts({"k": UsedResources(port={"registers": registers})})
    verdicts = (Verdict("resources", Status.PASS, "", (), used),)
    spent = Spent(usd=Decimal(usd))
    return Outcome(state, "done", "", "", (), verdicts, (), (), holes, spent, AgentSettings(), Rank(steps, speed))


@pytest.mark.parametrize(
    ("outcomes", "best"),
    [
        ([outcome("unchanged"), outcome("refused-unseen"), outcome("verified")], 3),
        ([outcome("unverified", steps=(1, 0)), outcome("unverified", steps=(1, 1))], 2),
        ([outcome("improved", speed=1.5), outcome("improved", speed=2.0)], 2),
        ([outcome("unchanged", holes=OPEN[2]), outcome("unchanged", holes=OPEN[1])], 2),
        ([outcome(registers=40), outcome(registers=32), outcome(registers=36)], 2),
        ([outcome(registers=32, usd="2"), outcome(registers=32, usd="1")], 2),
        ([outcome(registers=32, usd="1"), outcome(registers=32, usd="1")], 1),
        ([outcome(speed=2.0, registers=64), outcome(speed=1.0, registers=16)], 1),
    ],
)  # fmt: skip
def test_the_best_by_rank_then_holes_resources_and_cost(outcomes, best):
    assert choose(outcomes) == best
    assert together(outcomes, best).spent.usd == sum(o.spent.usd for o in outcomes)


def test_everything_that_was_spent_is_summed_and_the_longest_time_taken():
    """Unanswered requests too: their tokens count against a budget of tokens."""
    one = Spent(Usage(1, 2, 3, 4), Decimal("0.1"), Decimal("0.2"), 5, 6, 7, 8, 9.0)
    spent = together([replace(outcome(), spent=one), replace(outcome(), spent=replace(one, seconds=2.0))], 1).spent
    assert spent == Spent(Usage(2, 4, 6, 8), Decimal("0.2"), Decimal("0.4"), 10, 12, 14, 16, 9.0)


def test_an_error_of_one_is_raised_and_no_place_is_left(kernel):
    with serving(scripts(_1=[GIVE_UP], _2=[GIVE_UP])) as served:
        work = candidates(kernel, served.url, count=2)
        work.record_of(2).write_text('{"n":0,"t":0,"event":"start","kernel":"other"}\n')
        with pytest.raises(PorterError, match="does not fit this run"):
            work.go()
        assert not (work.folder.path / "work").exists()
        work.record_of(2).unlink()
        assert [o.ended for o in work.go().candidates] == ["gave-up", "gave-up"]


def test_when_one_fails_the_others_end_with_what_they_have_on_record(kernel, monkeypatch):
    """One dies after it has reserved and before it sends; the budget lets one ask at a time, and none waits forever."""

    def full_disk(self, kind, **content):
        if kind == "request" and "candidate-2" in str(self.path):
            raise OSError(28, "No space left on device")
        return real(self, kind, **content)

    real = Journal.add
    monkeypatch.setattr(Journal, "add", full_disk)
    with serving(endless) as served:
        options = {"usd": Decimal(2), "max_tokens": 70_000, "patience": 0, "attempts": 0}  # a reply: up to $1.40
        work = candidates(kernel, served.url, 3, **options)
        with pytest.raises(OSError, match="No space"):
            work.go()
        asked = len(served.requests)
        assert asked < 4 and not (work.folder.path / "work").exists()
        replies = sum(e["event"] == "reply" for n in (1, 3) for e in events_of(work.record_of(n)))
        assert replies == asked
        monkeypatch.undo()
        outcome = candidates(kernel, served.url, 3, **options).go()
        assert {o.ended for o in outcome.candidates} == {"budget"} and outcome.spent.replies == len(served.requests)


def test_the_number_of_candidates_is_checked():
    for bad in (0, 17, -1):
        with pytest.raises(PorterError, match="candidates"):
            load_settings(Path("/"), {}, candidates=bad)
    assert load_settings(Path("/"), {}, candidates=4).candidates == 4


# ---------------------------------------------------------------- one budget


def endless(request, n):
    time.sleep(0.05)  # so that requests of several candidates would be under way at once
    code = f"out[i] = wrong + {turn_of(request)} + {number_of(request)}"
    return Say(fill("", code), output=20_000)


def test_all_together_go_over_the_budget_by_one_reply_at_most(kernel):
    """A reply costs half a dollar; four candidates at once would send four requests before the first is answered."""
    with serving(endless) as served:
        work = candidates(kernel, served.url, 4, usd=Decimal(1), max_tokens=20_000, patience=0, attempts=0)
        outcome = work.go()
    assert {o.ended for o in outcome.candidates} == {"budget"}
    one = outcome.spent.usd / outcome.spent.replies
    assert Decimal(1) <= outcome.spent.usd < Decimal(1) + one
    assert len(served.requests) == outcome.spent.replies == 3
    assert outcome.cost == f"${outcome.spent.usd:.2f}"


def test_tokens_are_shared_too_and_far_from_the_end_all_ask_at_once(kernel):
    under_way, most, lock = [0], [0], threading.Lock()

    def counting(request, n):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        try:
            time.sleep(0.3)
            return replace(endless(request, n), input=1000, output=500)
        finally:
            with lock:
                under_way[0] -= 1

    with serving(counting) as served:
        work = candidates(
            kernel, served.url, 3, usd=None, tokens=1_000_000, max_tokens=500, patience=3, attempts=0
        )  # fmt: skip
        outcome = work.go()
        assert {o.ended for o in outcome.candidates} == {"no-improvement"} and most[0] == 3
        served.requests.clear()
        work = candidates(kernel, served.url, 3, name="few", usd=None, tokens=7_000, max_tokens=500, patience=0)
        outcome = work.go()
    assert {o.ended for o in outcome.candidates} == {"budget"}
    assert 7_000 <= outcome.spent.usage.total < 7_000 + 1_500 and len(served.requests) == 5


def test_a_request_waits_while_the_budget_is_not_certain():
    budget = SharedBudget(AgentSettings(usd=Decimal(1), model="claude-opus-5-5"))
    first, over = budget.admit(Most(Decimal("0.70"), 0))
    assert over == ""
    answers: list = []
    thread = threading.Thread(target=lambda: answers.append(budget.admit(Most(Decimal("0.70"), 0))))
    second, over = budget.admit(Most(Decimal("0.70"), 0))  # 0.70 < 1: certain
    assert over == "" and second != first
    thread.start()
    thread.join(0.3)
    assert answers == []  # 1.40 would be over
    usage = {"input": 10_000, "output": 0, "cache_read": 0, "cache_write": 0}  # $0.04
    budget.settle(first, {"event": "reply", "reply": {"content": [], "stop": "end_turn", "usage": usage}})
    thread.join(5)
    assert answers[0][1] == "" and budget.spent.usd == Decimal("0.04")
    budget.settle(second, {"event": "failed", "kind": "connection", "usage": {"input": 250_000}})
    assert budget.admit(Most(Decimal(0), 0)) == (-1, "the budget of $1.00 is used up")  # no ticket: 0 is the first's
    budget.stop.set()
    with pytest.raises(Cancelled):
        budget.admit(Most(Decimal(0), 0))


def test_the_most_that_a_request_can_cost():
    """No text has more tokens than bytes, and no reply more than max_tokens."""
    settings = AgentSettings(model="claude-opus-5-5")
    request = ModelRequest("claude-opus-5-5", 1000, ("é" * 50_000,), (), ())
    most = most_of(request, settings)
    assert most.tokens > 100_000 + 1000
    assert most.usd >= settings.price.of(Usage(cache_write=100_000, output=1000))


def test_time_is_of_all_together(kernel):
    with serving(endless) as served:
        start = time.monotonic()
        work = candidates(kernel, served.url, 3, usd=Decimal(500), max_tokens=20_000, patience=0, attempts=0, seconds=1)
        outcome = work.go()
    assert {o.ended for o in outcome.candidates} == {"budget"} and "the time of 1 s" in outcome.message
    assert time.monotonic() - start < 10 and outcome.spent.seconds < 3


def test_the_pace_is_of_all_together(kernel):
    now, sent, lock = [0.0], [], threading.Lock()

    class Watched(Limiter):
        def wait(self):
            super().wait()
            with lock:
                sent.append(now[0])

    def sleep(seconds):
        with lock:
            now[0] += seconds
        time.sleep(0.001)

    model = scripts(**{f"_{n}": [Say([call("read_region", region="port")]), GIVE_UP] for n in (1, 2, 3, 4)})
    with serving(model) as served:
        candidates(kernel, served.url, 4, limiter=Watched(2, lambda: now[0], sleep)).go()
        assert len(served.requests) == len(sent) == 8
    sent.sort()
    assert all(later - earlier >= 60 for earlier, later in zip(sent, sent[2:], strict=False))


def test_a_server_that_asks_one_to_wait_holds_all(kernel):
    model = scripts(_1=[GIVE_UP], _2=[GIVE_UP])
    answers = iter([Fail(429, "rate_limit_error", retry_after="0.5")])
    times: list[float] = []

    def once(request, n):
        times.append(time.monotonic())
        return next(answers, None) or model(request, n)

    with serving(once) as served:
        outcome = candidates(kernel, served.url, 2).go()
        assert len(served.requests) == 3
    assert [o.ended for o in outcome.candidates] == ["gave-up", "gave-up"]


# ---------------------------------------------------------------- killed and resumed

SCRIPT = scripts(
    _1=[Say([call("search_corpus", query="goto")]), Say(fill("pass", "out[i] = wrong")), GIVE_UP],
    _2=[Say(fill("pass", "")), Say(fill("", "out[i] = no_compile")), Say(fill("", "out[i] = n"))],
    _3=[Say([call("nothing")]), Say(fill("", "out[i] = nope")), GIVE_UP],
)


def whole(outcome):
    one = (outcome.state, outcome.message, outcome.text, outcome.line_map, outcome.kept, outcome.chosen)
    return one, outcome.spent.usd, outcome.spent.usage, [(o.state, o.message, o.candidate) for o in outcome.candidates]


def test_every_step_of_every_candidate_can_be_the_last(kernel):
    with serving(SCRIPT) as served:
        first = candidates(kernel, served.url, name="whole")
        expected = first.go()
        assert expected.state == "verified" and expected.chosen == 2
        lines = {n: first.record_of(n).read_bytes().splitlines(keepends=True) for n in (1, 2, 3)}
        steps = max(map(len, lines.values()))
        for step in range(steps + 1):
            work = candidates(kernel, served.url, name=f"cut-{step}")
            lost = waiting = 0
            for n in (1, 2, 3):
                end = min(len(lines[n]), step * n // 2 if step % 2 else step)  # not all at the same place
                tail = lines[n][end][:7] if end < len(lines[n]) and step % 3 == 0 else b""  # a torn line
                work.record_of(n).write_bytes(b"".join(lines[n][:end]) + tail)
                kinds = [json.loads(line)["event"] for line in lines[n]]
                lost += kinds[end:].count("reply")
                waiting += kinds[:end][-1:] == ["request"]
            served.requests.clear()
            resumed = work.go()
            assert whole(resumed) == whole(expected), step
            assert len(served.requests) == lost, step
            assert resumed.spent.maybe_requests == waiting, step  # one a candidate, shown as possibly charged
            assert not (work.folder.path / "work").exists()
        served.requests.clear()
        again = candidates(kernel, served.url, name="whole", provider=False)
        assert whole(again.go()) == whole(expected) and served.requests == []


def test_what_was_spent_before_a_stop_counts_when_resumed_and_a_used_up_budget_is_replayed(kernel):
    options = {"usd": Decimal(2), "max_tokens": 20_000, "patience": 0, "attempts": 0}
    with serving(endless) as served:
        work = candidates(kernel, served.url, 3, **options)
        expected = work.go()
        replies = len(served.requests)
        assert {o.ended for o in expected.candidates} == {"budget"} and expected.spent.usd < Decimal("2.5")
        served.requests.clear()
        assert whole(candidates(kernel, served.url, 3, provider=False, **options).go()) == whole(expected)
        # candidate 1 loses the end of its record: the others have used up the budget, so it may not ask again
        lines = work.record_of(1).read_bytes().splitlines(keepends=True)
        at = next(n for n, line in enumerate(lines) if b'"event":"budget"' in line)
        work.record_of(1).write_bytes(b"".join(lines[:at]))
        resumed = candidates(kernel, served.url, 3, **options).go()
        assert served.requests == [] and resumed.spent.replies == replies
        assert resumed.candidates[0].ended == "budget"


def test_one_that_got_no_answer_goes_on_when_resumed(kernel):
    def broken(request, n):
        return Fail(401, "authentication_error") if number_of(request) == 2 else SCRIPT(request, n)

    with serving(broken) as served:
        outcome = candidates(kernel, served.url).go()
        assert [o.ended for o in outcome.candidates] == ["gave-up", "provider", "gave-up"]
        assert outcome.state == "unverified" and outcome.chosen == 1
    with serving(SCRIPT) as served:
        outcome = candidates(kernel, served.url).go()
        assert (outcome.state, outcome.chosen, len(served.requests)) == ("verified", 2, 3)
