"""A real HTTP server that speaks the streaming Messages API. What it says is scripted by a function of the request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]


@dataclass(frozen=True)
class Say:
    """A reply. `raw_inputs` are texts sent instead of the JSON of the tool inputs; `cut_after` events the connection
    breaks; `pause` seconds pass between events."""

    content: Sequence[Block] = ()
    stop: str = ""
    input: int = 1000
    output: int = 100
    cache_read: int = 0
    cache_write: int = 0
    raw_inputs: Sequence[str] = ()
    cut_after: int = 0
    pause: float = 0.0
    error_inside: str = ""  # type of an `error` event in place of the end


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    type: str
    message: str = "no"
    retry_after: str = ""


Step = Say | Fail
Model = Callable[[dict[str, Any], int], Step]


def text(words: str) -> Block:
    return {"type": "text", "text": words}


_numbers = iter(range(1, 1_000_000))


def call(name: str, /, **inputs: Any) -> Block:
    return {"type": "tool_use", "id": f"toolu_{next(_numbers):06}", "name": name, "input": inputs}


def script(*steps: Step) -> Model:
    """The steps in order; the last one again and again."""
    return lambda request, number: steps[min(number, len(steps) - 1)]


@dataclass
class Served:
    url: str
    model: Model
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)  # as they came
    contacts: int = 0  # connections, whatever came over them
    lock: threading.Lock = field(default_factory=threading.Lock)

    def results(self, number: int) -> list[tuple[str, bool]]:
        """(text, is_error) of the tool results in the last message of a request."""
        last = self.requests[number]["messages"][-1]["content"]
        return [(_text(b["content"]), bool(b.get("is_error"))) for b in last if b["type"] == "tool_result"]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content)


@contextmanager
def serving(model: Model) -> Iterator[Served]:
    """A server on a free port of this machine while the block runs."""
    served = Served("", model)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            body = json.loads(raw)
            with served.lock:
                number = len(served.requests)
                served.requests.append(body)
                served.bodies.append(raw)
                served.headers.append({k.lower(): v for k, v in self.headers.items()})
            assert self.path.split("?")[0] == "/v1/messages" and body["stream"] is True
            try:
                answer(self, served.model(body, number), number, body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def verify_request(self, request: Any, client_address: Any) -> bool:
            served.contacts += 1
            return True

    server = Server(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


EMPTY: dict[str, Block] = {
    "tool_use": {"input": {}}, "text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}
}  # fmt: skip


def deltas(block: Block, raw: list[str]) -> Iterator[Block]:
    """The pieces in which a block comes. What a model thought in secret comes whole, in the start of its block."""
    kind = block["type"]
    if kind == "redacted_thinking":
        return
    if kind == "tool_use":
        whole, names = raw.pop(0) if raw else json.dumps(block["input"]), ("input_json_delta", "partial_json")
    else:
        whole, names = block[kind], (f"{kind}_delta", kind)
    for at in range(0, len(whole), 40):
        yield {"type": names[0], names[1]: whole[at : at + 40]}
    if kind == "thinking":
        yield {"type": "signature_delta", "signature": block["signature"]}


def answer(handler: BaseHTTPRequestHandler, step: Step, number: int, body: dict[str, Any]) -> None:
    if isinstance(step, Fail):
        data = json.dumps({"type": "error", "error": {"type": step.type, "message": step.message}}).encode()
        handler.send_response(step.status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(data)))
        if step.retry_after:
            handler.send_header("retry-after", step.retry_after)
        handler.end_headers()
        handler.wfile.write(data)
        return
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("connection", "close")
    handler.end_headers()
    handler.close_connection = True
    for sent, (name, data) in enumerate(events(step, number, body["model"])):
        if step.cut_after and sent >= step.cut_after:
            return
        handler.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        handler.wfile.flush()
        if step.pause:
            time.sleep(step.pause)


def events(say: Say, number: int, model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The server-sent events of a reply, in the API's order."""
    usage = {
        "input_tokens": say.input, "output_tokens": 1, "cache_read_input_tokens": say.cache_read,
        "cache_creation_input_tokens": say.cache_write,
    }  # fmt: skip
    message = {
        "id": f"msg_{number:04}", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield "message_start", {"type": "message_start", "message": message}
    yield "ping", {"type": "ping"}
    raw = list(say.raw_inputs)
    for index, block in enumerate(say.content):
        start = {**block, **EMPTY.get(block["type"], {})}
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas(block, raw):
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    if say.error_inside:
        error = {"type": say.error_inside, "message": "something broke"}
        yield "error", {"type": "error", "error": error}
        return
    stop = say.stop or ("tool_use" if any(b["type"] == "tool_use" for b in say.content) else "end_turn")
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": say.output}}
    yield "message_stop", {"type": "message_stop"}
