"""What a run may use and what it has used. Checked before each request, so that at most one reply goes over."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from porter.agents.messages import Usage
from porter.agents.prices import dollars
from porter.agents.settings import AgentSettings
from porter.wording import plural


@dataclass
class Spent:
    """`maybe`: of requests without a whole reply, which may have been charged."""

    usage: Usage = field(default_factory=Usage)
    usd: Decimal = Decimal(0)
    maybe: Decimal = Decimal(0)
    maybe_tokens: int = 0
    maybe_requests: int = 0
    replies: int = 0
    attempts: int = 0
    seconds: float = 0.0

    def reply(self, settings: AgentSettings, usage: Usage) -> None:
        self.replies += 1
        self.usage += usage
        price = settings.price
        self.usd += price.of(usage) if price else Decimal(0)

    def failure(self, settings: AgentSettings, usage: Usage) -> None:
        """A request that was sent and got no whole reply."""
        self.maybe_requests += 1
        self.maybe_tokens += usage.total
        price = settings.price
        self.maybe += price.of(usage) if price else Decimal(0)

    def with_run(self, other: Spent) -> Spent:
        """The sum of this and another candidate's, which ran at the same time: the longer of both times."""
        return Spent(
            self.usage + other.usage, self.usd + other.usd, self.maybe + other.maybe,
            self.maybe_tokens + other.maybe_tokens, self.maybe_requests + other.maybe_requests,
            self.replies + other.replies, self.attempts + other.attempts, max(self.seconds, other.seconds),
        )  # fmt: skip

    def over(self, settings: AgentSettings) -> str:
        """Which budget is used up, "" while none is."""
        if settings.usd is not None and self.usd + self.maybe >= settings.usd:
            return f"the budget of {dollars(settings.usd)} is used up"
        if settings.tokens and self.usage.total + self.maybe_tokens >= settings.tokens:
            return f"the budget of {plural(settings.tokens, 'token')} is used up"
        if settings.attempts and self.attempts >= settings.attempts:
            return f"the budget of {plural(settings.attempts, 'attempt')} is used up"
        if settings.seconds and self.seconds >= settings.seconds:
            return f"the time of {settings.seconds:g} s is used up"
        return ""

    def cost(self, settings: AgentSettings) -> str:
        """`$0.12` for a person; says when the price is unknown, or when more may have been charged."""
        text = dollars(self.usd) if settings.price else f"price of {settings.model} unknown"
        if self.maybe_requests:
            text += f", and {plural(self.maybe_requests, 'unanswered request')} possibly charged"
            text += f" ({dollars(self.maybe)} known)" if self.maybe else ""
        return text

    def to_json(self) -> dict[str, object]:
        return {
            "usd": str(self.usd), "maybe_usd": str(self.maybe), "maybe_tokens": self.maybe_tokens,
            "maybe_requests": self.maybe_requests, "tokens": self.usage.to_json(), "replies": self.replies,
            "attempts": self.attempts, "seconds": round(self.seconds, 3),
        }  # fmt: skip
