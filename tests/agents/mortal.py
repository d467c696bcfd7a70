"""A process that runs porter's command line in children which die at a chosen step, as by kill -9.

Reads one JSON line a child from stdin, {"args": [...], "die_at": 7}, and answers with {"code": ..., "steps": [...]}.
A step is what leaves a trace: a file opened for writing, renamed, removed or made, a folder made, a flush to disk, a
connection to the server, a request sent or answered. The child dies before the step that has the number: by os._exit,
so that nothing is cleaned up and what was not flushed is lost. The verifier is the one of marks, for speed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

DEAD = 137


class Steps:
    """Counts steps and dies before number `die_at`. `log` is a file descriptor that is told each."""

    def __init__(self, die_at: int, log: int):
        self.die_at, self.log, self.count = die_at, log, 0
        self.root = str(Path.cwd())

    def step(self, what: str) -> None:
        if self.count == self.die_at:
            os._exit(DEAD)
        self.count += 1
        os.write(self.log, f"{what}\n".encode())

    def mine(self, path: Any) -> bool:
        if not isinstance(path, str | os.PathLike):
            return False
        return os.path.abspath(os.fspath(path)).startswith(self.root)

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and self.mine(args[0]):
            flags = args[2] if isinstance(args[2], int) else 0
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self.step(f"open {Path(args[0]).suffix}")
        elif event == "os.rename" and self.mine(args[0]):
            self.step(f"os.rename {Path(args[1]).name}")
        elif event in ("os.mkdir", "os.remove", "os.truncate") and self.mine(args[0]):
            self.step(event)
        elif event == "socket.connect" and args[1] and isinstance(args[1], tuple):
            self.step("connect")


def child(args: list[str], die_at: int, log: int) -> int:
    """Run the command line in this process. Never returns when it dies."""
    import porter.agents.runs.session
    import porter.verify.compile.worker
    from porter.agents.providers import anthropic_messages
    from porter.agents.record import Journal
    from porter.cli import main
    from tests.agents.stub_verifier import StubVerifier

    steps = Steps(die_at, log)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    porter.agents.runs.session.PortVerifier = lambda *args: StubVerifier()  # type: ignore[misc,assignment]
    porter.verify.compile.worker.warm = lambda: None
    rename, send, write = os.replace, anthropic_messages.AnthropicMessages.send, Journal.write

    def synced(handle: int) -> None:
        steps.step("before fsync")  # and none: what a process has flushed outlives it
        steps.step("after fsync")

    def renamed(old: Any, new: Any) -> None:
        rename(old, new)  # the audit hook has the step before
        steps.step(f"after rename {Path(new).name}")

    def sent(self: Any, *given: Any) -> Any:
        steps.step("before request")
        reply = send(self, *given)
        steps.step("after reply")
        return reply

    def noted(self: Any, event: Any) -> Any:
        steps.step(f"note {event['event']}")
        line = write(self, event)
        steps.step(f"noted {event['event']}")
        return line

    os.fsync, os.replace = synced, renamed  # type: ignore[assignment]
    anthropic_messages.AnthropicMessages.send = sent  # type: ignore[method-assign]
    Journal.write = noted  # type: ignore[method-assign]
    sys.addaudithook(steps.audit)
    try:
        return main(args)
    except SystemExit as end:
        return int(end.code or 0)


def run(args: list[str], die_at: int) -> dict[str, Any]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        code = 99
        try:
            code = child(args, die_at, writer)
            os.write(writer, "".join(f"module {name}\n" for name in sys.modules).encode())
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as told:
        lines = told.read().splitlines()
    _, status = os.waitpid(pid, 0)
    modules = [line.removeprefix("module ") for line in lines if line.startswith("module ")]
    steps = [line for line in lines if not line.startswith("module ")]
    return {"code": os.waitstatus_to_exitcode(status), "steps": steps, "modules": modules}


def serve() -> None:
    from porter.agents.exemplars import ranker

    ranker()
    known: set[str] = set()
    for line in sys.stdin:
        asked = json.loads(line)
        answer = run(asked["args"], asked["die_at"])
        for name in [m for m in answer.pop("modules") if m not in known]:  # imported once, not in every child
            known.add(name)
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
