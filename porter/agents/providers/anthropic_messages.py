"""The Messages API of Anthropic through its SDK: streaming, tool use, prompt caching. The only importer of the SDK."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import anthropic

from porter.agents.messages import Block, Message, ModelReply, ModelRequest, OnText, ProviderError, Usage
from porter.agents.providers import Connection

CACHED = {"type": "ephemeral"}
_KINDS = {401: "auth", 402: "auth", 403: "forbidden", 408: "server", 429: "rate-limit", 529: "overloaded"}
_TYPES = {
    "authentication_error": "auth", "permission_error": "forbidden", "rate_limit_error": "rate-limit",
    "overloaded_error": "overloaded", "api_error": "server", "timeout_error": "server",
}  # fmt: skip


def connect(connection: Connection) -> AnthropicMessages:
    return AnthropicMessages(connection)


class AnthropicMessages:
    """Retries are the caller's, since each try is recorded and may be charged."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.client = self._client(connection.key)

    def _client(self, key: str, **more: Any) -> anthropic.Anthropic:
        if self.connection.base_url:
            more["base_url"] = self.connection.base_url
        return anthropic.Anthropic(api_key=key, max_retries=0, timeout=self.connection.timeout, **more)

    def wire(self, request: ModelRequest) -> tuple[str, bytes]:
        """What the SDK makes of the request, caught where it would go to the network."""
        caught = _Caught()
        client = self._client("none", http_client=anthropic.DefaultHttpxClient(transport=caught))  # type: ignore[arg-type]
        with contextlib.suppress(anthropic.APIConnectionError):
            client.messages.create(**body(request), stream=True)
        return caught.url, caught.body

    def send(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        reply = _Reply()
        try:
            with self.client.messages.create(**body(request), stream=True) as stream:
                for event in stream:
                    reply.take(event, on_text)
        except anthropic.APIStatusError as error:
            raise _failure(error, reply.usage) from error
        except anthropic.APIError as error:  # no connection, silence, or an `error` event inside the stream
            raise ProviderError("connection", self._say(error), usage=reply.usage) from error
        except (anthropic.AnthropicError, OSError, ValueError) as error:
            raise ProviderError("connection", self._say(error), usage=reply.usage) from error
        except Exception as error:  # the SDK lets errors of its HTTP library through when a stream breaks
            if type(error).__module__.split(".")[0] not in ("httpx", "httpx2", "httpcore", "httpcore2", "h11"):
                raise
            raise ProviderError("connection", self._say(error), usage=reply.usage) from error
        if not reply.stop:
            raise ProviderError("connection", "the stream ended before the reply was complete", usage=reply.usage)
        return ModelReply(tuple(reply.finished()), reply.stop, reply.usage, reply.id)

    def _say(self, error: BaseException) -> str:
        name = type(error).__name__
        if "Timeout" in name:
            return f"no data arrived for {self.connection.timeout:g} s"
        return f"{name}: {error}" if str(error) else name


def body(request: ModelRequest) -> dict[str, Any]:
    """The request as the API takes it. Cache marks end what stays the same for all kernels, the task, and the latest
    message: the API looks back over 20 blocks for a mark that it knows, and one turn may have more."""
    system: list[Block] = [{"type": "text", "text": text} for text in request.system]
    if system:
        system[-1] = {**system[-1], "cache_control": CACHED}
    messages: list[Message] = [dict(m) for m in request.messages]
    for at in {0, len(messages) - 1} if messages else ():
        content = [dict(b) for b in messages[at]["content"]]
        content[-1]["cache_control"] = CACHED
        messages[at]["content"] = content
    return {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": system,
        "tools": list(request.tools),
        "messages": messages,
    }


class _Caught:
    """Stands where the SDK's HTTP library has its network: keeps the request, and sends nothing."""

    url = ""
    body = b""

    def handle_request(self, request: Any) -> Any:
        self.url, self.body = str(request.url), request.read()
        raise OSError("not sent")

    def close(self) -> None:
        pass

    def __enter__(self) -> _Caught:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class _Reply:
    """A reply as it streams in."""

    def __init__(self) -> None:
        self.id = ""
        self.stop = ""
        self.usage = Usage()
        self.blocks: dict[int, Block] = {}
        self.inputs: dict[int, str] = {}

    def take(self, event: Any, on_text: OnText) -> None:
        if event.type == "message_start":
            self.id = event.message.id
            self.usage = _usage(event.message.usage, self.usage)
        elif event.type == "content_block_start":
            self.blocks[event.index] = event.content_block.model_dump(mode="json", exclude_none=True)
        elif event.type == "content_block_delta":
            self._delta(event.index, event.delta, on_text)
        elif event.type == "message_delta":
            self.stop = event.delta.stop_reason or self.stop
            self.usage = _usage(event.usage, self.usage)

    def _delta(self, index: int, delta: Any, on_text: OnText) -> None:
        block = self.blocks.setdefault(index, {"type": "text", "text": ""})
        if delta.type == "text_delta":
            block["text"] = block.get("text", "") + delta.text
            on_text(delta.text)
        elif delta.type == "input_json_delta":
            self.inputs[index] = self.inputs.get(index, "") + delta.partial_json
        elif delta.type == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta.thinking
        elif delta.type == "signature_delta":
            block["signature"] = delta.signature

    def finished(self) -> list[Block]:
        """The blocks, inputs parsed. Empty text blocks are left out: the API refuses them when they are sent back."""
        found = []
        for index, block in sorted(self.blocks.items()):
            if block["type"] == "tool_use" and self.inputs.get(index):
                try:
                    value = json.loads(self.inputs[index])
                except json.JSONDecodeError:
                    value = None
                block["input"] = value if isinstance(value, dict) else {}
                if not isinstance(value, dict):
                    block["unreadable_input"] = self.inputs[index]
            if block["type"] != "text" or block.get("text"):
                found.append(block)
        return found


def _usage(given: Any, before: Usage) -> Usage:
    """Counts of an event; those that it does not give stay. They are totals of the reply, not additions."""

    def count(name: str, old: int) -> int:
        value = getattr(given, name, None)
        return old if value is None else int(value)

    return Usage(
        count("input_tokens", before.input),
        count("output_tokens", before.output),
        count("cache_read_input_tokens", before.cache_read),
        count("cache_creation_input_tokens", before.cache_write),
    )


def _failure(error: anthropic.APIStatusError, usage: Usage) -> ProviderError:
    status = error.status_code
    inner = error.body.get("error", error.body) if isinstance(error.body, dict) else {}
    inner = inner if isinstance(inner, dict) else {}
    message = str(inner.get("message") or error.message)
    kind = _TYPES.get(str(inner.get("type"))) if status < 400 else _KINDS.get(status)
    if kind is None:
        kind = "server" if status >= 500 else "bad-request"
    if kind == "bad-request" and (status == 413 or ("prompt" in message and "long" in message)):
        kind = "context-too-long"
    after = error.response.headers.get("retry-after", "")
    try:
        seconds: float | None = max(0.0, float(after))
    except ValueError:
        seconds = None
    return ProviderError(kind, f"{status} {message}" if status >= 400 else message, seconds, usage)
