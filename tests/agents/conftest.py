"""`agent`: a run against the scripted server, with a verifier of marks unless another is given."""

from __future__ import annotations

import os
from dataclasses import replace
from decimal import Decimal

import pytest

from porter.agents.limiter import Limiter
from porter.agents.loop import Run
from porter.agents.providers import Connection, connect
from porter.agents.record import Journal
from porter.agents.settings import AgentSettings
from tests.agents.messages_server import serving
from tests.agents.stub_verifier import SUBJECT, StubVerifier

KEY = "sk-test-0123456789"


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Nothing in this process needs its files after a loss of power; runs/test_every_step.py has processes that
    sync."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def agent(tmp_path):
    """Run scripted replies to the end: `agent(model, **settings)` gives (outcome, served, slept)."""
    pytest.importorskip("anthropic", reason="needs the extra `agent`")

    def run(model, /, subject=SUBJECT, verifier=None, path=None, key=KEY, **changes):
        settings = replace(AgentSettings(usd=Decimal(5)), **changes)
        slept: list[float] = []
        now = [0.0]
        with serving(model) as served:
            provider = connect(settings.provider, Connection(key, served.url, settings.timeout))
            journal = Journal(path or tmp_path / "run" / "events.jsonl", [key])
            try:
                limiter = Limiter(clock=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s))
                run = Run(subject, verifier or StubVerifier(), provider, settings, journal, limiter, sleep=slept.append)
                outcome = run.go()
            finally:
                journal.close()
        return outcome, served, slept

    return run
