"""USD and tokens that several candidates of one kernel use up together, reserved before each request is sent.

A request is let through at once while the budget would not be used up even if every request under way cost the most
that it can; otherwise it waits for those. All together go over a budget by one reply at most, as one does.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from porter.agents.budget import Spent
from porter.agents.messages import ModelRequest, Usage, reply_from_json
from porter.agents.settings import AgentSettings

SLACK = 4000  # tokens that a server may add of its own: how tools are to be called, marks of turns
WAKE = 0.2  # seconds after which a waiting candidate looks whether it is to stop
UNCHARGED = ("not-sent", "auth", "forbidden", "rate-limit", "bad-request", "context-too-long")  # kinds of failures


class Cancelled(Exception):
    """The command is being interrupted: what has been recorded can be resumed."""


@dataclass(frozen=True)
class Most:
    """The most that a reply can cost."""

    usd: Decimal
    tokens: int


def most_of(request: ModelRequest, settings: AgentSettings) -> Most:
    """A token is at least one byte of the request, and a reply has `max_tokens` at most."""
    prompt = len(json.dumps(request.to_json(), ensure_ascii=False).encode()) + SLACK
    whole = [Usage(input=prompt, output=request.max_tokens), Usage(cache_write=prompt, output=request.max_tokens)]
    price = settings.price
    usd = max(price.of(usage) for usage in whole) if price else Decimal(0)
    return Most(usd, prompt + request.max_tokens)


@dataclass
class SharedBudget:
    """`spent`: of all candidates, with what an earlier process recorded. `stop` is set when everything is to end."""

    settings: AgentSettings
    spent: Spent = field(default_factory=Spent)
    stop: threading.Event = field(default_factory=threading.Event)
    held: dict[int, Most] = field(default_factory=dict)  # of the requests under way
    turn: threading.Condition = field(default_factory=threading.Condition)
    numbers: Any = field(default_factory=itertools.count)

    def admit(self, most: Most) -> tuple[int, str]:
        """(ticket, "") when a request may be sent, else (-1, the budget that is used up). Waits while that is not
        certain.

        Raises Cancelled.
        """
        with self.turn:
            while True:
                if self.stop.is_set():
                    raise Cancelled
                over = self.over()
                if over:
                    return -1, over
                if not self.held or not self.over(*self.held.values()):
                    ticket = next(self.numbers)
                    self.held[ticket] = most
                    return ticket, ""
                self.turn.wait(WAKE)

    def over(self, *held: Most) -> str:
        """Which budget is used up when the requests under way cost so much."""
        usd, tokens = sum((m.usd for m in held), start=Decimal(0)), sum(m.tokens for m in held)
        usage = self.spent.usage + Usage(input=tokens)
        limits = replace(self.settings, attempts=0, seconds=0)
        return replace(self.spent, usd=self.spent.usd + usd, usage=usage).over(limits)

    def settle(self, ticket: int, event: Mapping[str, Any] | None) -> None:
        """A request is answered: by this event of its record, or not at all."""
        with self.turn:
            self.held.pop(ticket, None)
            if event is not None:
                count(self.spent, self.settings, event)
            self.turn.notify_all()


def count(spent: Spent, settings: AgentSettings, event: Mapping[str, Any]) -> None:
    """Add what an event of a record cost."""
    if event["event"] == "reply":
        spent.reply(settings, reply_from_json(event["reply"]).usage)
    elif event["event"] == "failed" and event["kind"] not in UNCHARGED:
        spent.failure(settings, Usage(**event.get("usage", {})))


def spent_in(records: Sequence[Sequence[Mapping[str, Any]]], settings: AgentSettings) -> Spent:
    """What the recorded events of all candidates cost."""
    spent = Spent()
    for events in records:
        for event in events:
            count(spent, settings, event)
    return spent
