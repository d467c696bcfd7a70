"""What goes to a model and what comes back, whoever serves it: blocks as plain JSON values, tokens as counts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Block = dict[str, Any]  # {"type": "text" | "tool_use" | "tool_result" | ..., ...}
Message = dict[str, Any]  # {"role": "user" | "assistant", "content": [Block, ...]}
OnText = Callable[[str], None]


@dataclass(frozen=True)
class Usage:
    """Tokens that a reply is charged for. `input` does not count what was read from or written to the cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )

    @property
    def prompt(self) -> int:
        """Tokens of the prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        return self.prompt + self.output

    def to_json(self) -> dict[str, int]:
        return {
            "input": self.input, "output": self.output, "cache_read": self.cache_read, "cache_write": self.cache_write
        }  # fmt: skip


@dataclass(frozen=True)
class ModelRequest:
    """One request. `system` and `tools` are the same in all requests of a run, so that they can be cached."""

    model: str
    max_tokens: int
    system: tuple[str, ...]
    tools: tuple[Block, ...]
    messages: tuple[Message, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "system": list(self.system),
            "tools": list(self.tools),
            "messages": list(self.messages),
        }

    @property
    def digest(self) -> str:
        """Names the request's content, to tell whether a recorded reply is the answer to it."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class ModelReply:
    """A whole reply. A tool_use block whose input was no JSON object has the text under `unreadable_input`."""

    content: tuple[Block, ...]
    stop: str  # end_turn, tool_use, max_tokens, refusal, model_context_window_exceeded, ...
    usage: Usage = Usage()
    request_id: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "content": list(self.content), "stop": self.stop, "usage": self.usage.to_json(),
            "request_id": self.request_id,
        }  # fmt: skip


def reply_from_json(value: dict[str, Any]) -> ModelReply:
    return ModelReply(tuple(value["content"]), value["stop"], Usage(**value["usage"]), str(value.get("request_id", "")))


@dataclass
class ProviderError(Exception):
    """A request that got no whole reply. `usage` is what may have been charged all the same."""

    kind: str  # auth, forbidden, bad-request, context-too-long, rate-limit, overloaded, server, connection
    message: str
    retry_after: float | None = None  # seconds, where the server said so
    usage: Usage = field(default_factory=Usage)

    def __str__(self) -> str:
        return self.message

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in ("rate-limit", "overloaded", "server", "connection")
