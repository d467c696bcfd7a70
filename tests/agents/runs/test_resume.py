"""A run that is killed at any point and resumed ends as if it had not been, and asks for no recorded reply again."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from decimal import Decimal
from functools import lru_cache

import pytest

from porter.agents.loop import Run
from porter.agents.providers import Connection, connect
from porter.agents.record import Journal
from porter.agents.settings import AgentSettings
from porter.model import PorterError
from tests.agents.conftest import KEY
from tests.agents.messages_server import Fail, Say, call, serving, text
from tests.agents.stub_verifier import SUBJECT, StubVerifier

pytest.importorskip("anthropic", reason="needs the extra `agent`")

STEPS = [
    Say(
        [text("let me see"), call("search_corpus", query="goto"), call("read_region", region="hole-1")], cache_write=700
    ),
    Fail(529, "overloaded_error"),
    Say([call("replace_region", region="hole-2", code="out[i] = nope"), call("check_names"), call("verify")]),
    Say([call("replace_region", region="hole-1", code="pass"), call("verify")], cache_read=900),
    Say([call("replace_region", region="hole-2", code="out[i] = no_compile"), call("compile"), call("verify")]),
    Say([call("replace_region", region="hole-2", code="out[i] = n"), call("verify")]),
]


class Killed(BaseException):
    """kill -9, for a test in one process: nothing that catches errors sees it."""


class Mortal(Journal):
    """Dies at its n-th write: before it, with half a line on disk, or after it."""

    def __init__(self, *args, die_at=-1, how="after", **kwargs):
        super().__init__(*args, **kwargs)
        self.die_at, self.how, self.writes = die_at, how, 0

    def write(self, event):
        mine = self.writes == self.die_at
        self.writes += 1
        if mine and self.how == "before":
            raise Killed
        if mine and self.how == "torn":
            self.file.write(json.dumps(event).encode()[: len(json.dumps(event)) // 2])
            self.file.flush()
            raise Killed
        line = super().write(event)
        if mine:
            raise Killed
        return line


def model(request, number):
    """The reply depends on the conversation alone, as with a recorded model."""
    said = [m for m in request["messages"] if m["role"] == "assistant"]
    replies = [s for s in STEPS if isinstance(s, Say)]
    return replies[len(said)]


@lru_cache(maxsize=4)
def provider_at(url):
    return connect("anthropic_messages", Connection(KEY, url))


def go(path, url, die_at=-1, how="after"):
    settings = AgentSettings(usd=Decimal(5))
    verifier = StubVerifier()
    journal = Mortal(path, [KEY], die_at=die_at, how=how)
    try:
        return (
            Run(SUBJECT, verifier, provider_at(url), settings, journal, sleep=lambda s: None).go(),
            verifier,
            journal.writes,
        )
    except Killed:
        return None, verifier, journal.writes
    finally:
        journal.close()


def whole(outcome):
    """What a run must give however often it was stopped; times differ."""
    return (
        outcome.state, outcome.ended, outcome.message, outcome.text, outcome.line_map, outcome.kept, outcome.spent.usd,
        outcome.spent.usage, outcome.spent.attempts, outcome.spent.replies,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["before", "torn", "after"])
def test_every_step_can_be_the_last(tmp_path, how):
    with serving(model) as served:
        expected, _, writes = go(tmp_path / "whole.jsonl", served.url)
        assert expected.state == "verified" and writes > 25
        replies = expected.spent.replies
        for die_at in range(writes):
            path = tmp_path / f"{how}-{die_at}.jsonl"
            served.requests.clear()
            killed, _, _ = go(path, served.url, die_at, how)
            assert killed is None
            outcome, _, _ = go(path, served.url)
            assert whole(outcome) == whole(expected), die_at
            again = len(served.requests) - replies
            maybe = outcome.spent.maybe_requests  # also counts a request that was noted and then not sent
            assert again in (0, 1) and again <= maybe <= 1, die_at
            assert ("possibly charged" in outcome.cost) == (maybe == 1)
            if maybe:  # only a reply that was under way when it died
                events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
                assert events.count("failed") == 1 and events.count("request") == replies + 1


def test_killed_twice_at_each_pair_of_places(tmp_path):
    with serving(model) as served:
        expected, _, writes = go(tmp_path / "whole.jsonl", served.url)
        for first in range(2, writes, 7):
            path = tmp_path / f"{first}.jsonl"
            go(path, served.url, first, "torn")
            go(path, served.url, 3, "before")
            outcome, _, _ = go(path, served.url)
            assert whole(outcome) == whole(expected), first


def test_a_finished_run_is_read_again_without_a_request_or_a_verification(tmp_path):
    path = tmp_path / "r.jsonl"
    with serving(model) as served:
        expected, _, _ = go(path, served.url)
        before = path.read_bytes()
        served.requests.clear()
        outcome, verifier, _ = go(path, served.url)
        assert whole(outcome) == whole(expected)
        assert (served.requests, verifier.asked, path.read_bytes()) == ([], [], before)


def test_a_failure_that_was_recorded_is_not_counted_twice(tmp_path):
    answers = iter([STEPS[0], STEPS[1], *STEPS[2:]])
    path = tmp_path / "r.jsonl"
    with serving(lambda request, n: next(answers)) as served:
        expected, _, _ = go(path, served.url)
        assert expected.spent.maybe_requests == 1
        outcome, _, _ = go(path, served.url)
        assert (whole(outcome), outcome.spent.maybe_requests) == (whole(expected), 1)


def test_a_record_of_something_else_is_refused(tmp_path):
    path = tmp_path / "r.jsonl"
    with serving(model) as served:
        go(path, served.url, 10)
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines).replace("goto has no equivalent", "goto has an equivalent"))
        with pytest.raises(PorterError, match="does not fit this run"):
            go(path, served.url)
        path.write_text("".join([lines[0], "{nonsense}\n", *lines[2:]]))
        with pytest.raises(PorterError, match="damaged"):
            go(path, served.url)


def test_a_run_that_got_no_answer_goes_on_when_there_is_one(tmp_path):
    path = tmp_path / "r.jsonl"

    def run(url, provider=True):
        settings = AgentSettings(usd=Decimal(5), retries=1)
        journal = Journal(path, [KEY])
        try:
            if provider:
                journal.reopen()
            who = provider_at(url) if provider else None
            return Run(SUBJECT, StubVerifier(), who, settings, journal, sleep=lambda s: None).go()
        finally:
            journal.close()

    with serving(lambda request, n: Fail(529, "overloaded_error") if n >= 2 else model(request, n)) as served:
        assert run(served.url).ended == "provider" and len(served.requests) == 4
        assert run(served.url).ended == "provider" and len(served.requests) == 6  # tried again, with fresh retries
        assert run(served.url, provider=False).ended == "provider"  # without a key it is only read
    with serving(model) as served:
        outcome = run(served.url)
        assert (outcome.state, outcome.spent.replies, outcome.spent.maybe_requests) == ("verified", 5, 4)
        assert len(served.requests) == 3
        assert whole(run(served.url)) == whole(outcome) and len(served.requests) == 3
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-4]))
    run("", provider=False)
    path.write_text("".join(lines[:3]))
    with pytest.raises(PorterError, match="there is no key"):
        run("", provider=False)


@pytest.mark.parametrize("die_at", [4, 7, 11])
def test_what_was_spent_before_a_stop_counts_after_it(tmp_path, die_at):
    """The budget of a run is for all of it, however often it is resumed."""

    def busy(request, number):
        turn = sum(m["role"] == "assistant" for m in request["messages"])
        return Say([call("search_corpus", query=f"query {turn}")], input=100, output=900, cache_read=40_000)

    def run(url, at=-1):
        journal = Mortal(tmp_path / "r.jsonl", [KEY], die_at=at)
        try:
            settings = AgentSettings(usd=Decimal("0.10"))
            return Run(SUBJECT, StubVerifier(), provider_at(url), settings, journal, sleep=lambda s: None).go()
        except Killed:
            return None
        finally:
            journal.close()

    with serving(busy) as served:
        assert run(served.url, die_at) is None
        outcome = run(served.url)
    one = Decimal("0.0264")
    assert (outcome.ended, outcome.message) == ("budget", "the budget of $0.10 is used up")
    assert outcome.spent.usd == 4 * one and outcome.spent.usd - one < Decimal("0.10")
    assert len(served.requests) - 4 == outcome.spent.maybe_requests <= 1


def test_answers_that_break_off_use_up_the_budget_however_often_the_run_is_resumed(tmp_path):
    """Each may have been charged: 1001 tokens, $0.00402. The last try of a start is no exception."""
    path = tmp_path / "r.jsonl"
    with serving(lambda request, n: Say([call("check_names")], cut_after=2)) as served:
        for _ in range(4):
            journal = Journal(path, [KEY])
            journal.reopen()
            settings = AgentSettings(usd=Decimal("0.007"), retries=1)
            run = Run(SUBJECT, StubVerifier(), provider_at(served.url), settings, journal, sleep=lambda s: None)
            outcome = run.go()
            journal.close()
    assert len(served.requests) == 2 and outcome.spent.maybe == Decimal("0.00804")
    assert (outcome.ended, outcome.message) == ("budget", "the budget of $0.01 is used up")


def test_waiting_for_a_server_counts_as_time(tmp_path):
    now = [0.0]
    journal = Journal(tmp_path / "r.jsonl", clock=lambda: now[0])
    with serving(lambda request, n: Fail(529, "overloaded_error")) as served:
        settings, sleep = AgentSettings(seconds=10), lambda s: now.__setitem__(0, now[0] + s)
        outcome = Run(SUBJECT, StubVerifier(), provider_at(served.url), settings, journal, sleep=sleep).go()
    journal.close()
    assert (outcome.ended, outcome.message) == ("budget", "the time of 10 s is used up")
    assert len(served.requests) == 4  # after 0, 2, 6 and 14 s


@pytest.mark.parametrize("at", [0, 3, 9, 20])
def test_a_full_disk_is_a_message_and_the_run_goes_on_when_there_is_room(tmp_path, monkeypatch, at):
    path = tmp_path / "r.jsonl"
    count = iter(range(1000))

    def full(handle):
        if next(count) == at:
            raise OSError(errno.ENOSPC, "No space left on device")

    with serving(model) as served:
        expected, _, _ = go(tmp_path / "whole.jsonl", served.url)
        with monkeypatch.context() as patch, pytest.raises(PorterError, match="no space left to write") as raised:
            patch.setattr(os, "fsync", full)
            go(path, served.url)
        assert raised.value.diagnostics[0].code == "PRT953"
        outcome, _, _ = go(path, served.url)
        assert whole(outcome) == whole(expected)


CHILD = """
    import sys
    from pathlib import Path
    from tests.agents.runs.test_resume import go
    go(Path(sys.argv[1]), sys.argv[2])
"""


def test_kill_9_of_a_real_process(tmp_path):
    def slow(request, number):
        time.sleep(0.15)
        return model(request, number)

    with serving(slow) as served:
        expected, _, _ = go(tmp_path / "whole.jsonl", served.url)
        for number, wanted in enumerate((4, 17)):
            path = tmp_path / f"{number}.jsonl"
            child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(CHILD), str(path), served.url])
            end = time.monotonic() + 60
            while child.poll() is None and time.monotonic() < end:
                if path.exists() and path.read_bytes().count(b"\n") >= wanted:
                    os.kill(child.pid, signal.SIGKILL)
                    break
                time.sleep(0.002)
            child.wait(60)
            served.requests.clear()
            outcome, _, _ = go(path, served.url)
            assert whole(outcome) == whole(expected)
            assert outcome.spent.maybe_requests <= 1
