"""What happened in a run, one JSON object a line, each on disk before the run goes on. Resuming is replaying it.

The loop is deterministic but for what it asks of the outside: models, the verifier, the clock. Their answers are here,
so a run that was killed goes through its record again and asks only for what is not in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from porter import codes
from porter.files.atomic import writing_failed
from porter.model import Diagnostic, PorterError
from porter.source import Span

Event = dict[str, Any]
_FREE = ("t", "n")  # keys that may differ between a record and its replay
SHORTEST = 8  # characters of a key; a shorter one (`none`, `test`) is no secret, and may be a word of the record itself

ELSEWHERE = "set `runs` of [tool.porter.agent] to another folder"  # for runs that cannot be written


class Journal:
    """Appends events to `path`; `secrets` are replaced wherever they would appear."""

    def __init__(self, path: Path, secrets: Sequence[str] = (), clock: Callable[[], float] = time.monotonic):
        self.path = path
        self.secrets = [s for s in secrets if len(s) >= SHORTEST]
        self.clock = clock
        try:
            self.past = _read(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            _cut_torn_line(path)
            self.file = path.open("ab")
        except OSError as error:
            raise writing_failed(path, error, ELSEWHERE) from error
        self.at = 0
        self.before = float(self.past[-1]["t"]) if self.past else 0.0  # seconds used up by the record
        self.start = clock()

    @property
    def replaying(self) -> bool:
        return self.at < len(self.past)

    @property
    def seconds(self) -> float:
        """Seconds of work up to the last event, pauses between a stop and a resume left out. The same in a replay."""
        return float(self.past[self.at - 1]["t"]) if self.at else 0.0

    def now(self) -> float:
        return self.before + self.clock() - self.start

    def next_is(self, kind: str) -> bool:
        return self.replaying and bool(self.past[self.at]["event"] == kind)

    def recall(self, *kinds: str) -> Event | None:
        """The next recorded event when it is of one of these kinds. Raises PorterError PRT926 when it is another."""
        if not self.replaying:
            return None
        event = self.past[self.at]
        if event["event"] not in kinds:
            raise self.astray(f"{' or '.join(kinds)} expected, {event['event']} found")
        self._advance()
        return event

    def reopen(self) -> None:
        """Let a run that ended for want of an answer go on: its end stays in the record, and is followed by `again`."""
        if self.past and self.past[-1]["event"] == "end" and self.past[-1].get("ended") == "provider":
            at = self.at
            self.write({"event": "again"})
            self.at = at

    def goes_on(self) -> bool:
        """Whether the record ends a run here and takes it up again; passes over both events."""
        if [e["event"] for e in self.past[self.at : self.at + 2]] != ["end", "again"]:
            return False
        self._advance()
        self._advance()
        return True

    def add(self, kind: str, **content: Any) -> Event:
        """Note an event; while replaying, make sure that it is the recorded one."""
        event = self.clean({"event": kind, **content})
        past = self.recall(kind)
        if past is None:
            return self.write(event)
        if {k: v for k, v in past.items() if k not in _FREE} != event:
            raise self.astray(f"{kind} is not what was recorded")
        return past

    def once(self, kind: str, key: dict[str, Any], work: Callable[[], Any]) -> Any:
        """What `work` gives (a JSON value), from the record where it is there."""
        past = self.recall(kind)
        if past is not None:
            if past["of"] != self.clean(key):
                raise self.astray(f"{kind} is about something else")
            return past["answer"]
        return self.write(self.clean({"event": kind, "of": key, "answer": work()}))["answer"]

    def write(self, event: Event) -> Event:
        line = {"n": self.at, "t": round(self.now(), 3), **event}
        try:
            self.file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:  # half a line may be there: it is cut off when the run is resumed
            raise writing_failed(self.path, error, ELSEWHERE) from error
        self.past.append(line)
        self.at = len(self.past)
        return line

    def clean(self, value: Any) -> Any:
        """The value as JSON gives it back, without secrets."""
        found = json.loads(json.dumps(value, ensure_ascii=False))
        for secret in self.secrets:
            found = _without(found, secret)
        return found

    def astray(self, why: str) -> PorterError:
        message = f"the record does not fit this run at line {self.at + 1}: {why}"
        help_ = "porter, the source or the settings have changed since; start a new run"
        return PorterError(Diagnostic(codes.RUN_CANNOT_RESUME, message, Span(str(self.path), self.at + 1), help=help_))

    def _advance(self) -> None:
        self.at += 1
        if not self.replaying:
            self.start = self.clock()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # of a disk that is full, said before
            self.file.close()


def _without(value: Any, secret: str) -> Any:
    """A JSON value with a secret replaced in all of its texts, keys too."""
    if isinstance(value, str):
        return value.replace(secret, "[secret]")
    if isinstance(value, list):
        return [_without(v, secret) for v in value]
    if isinstance(value, dict):
        return {k.replace(secret, "[secret]"): _without(v, secret) for k, v in value.items()}
    return value


def _read(path: Path) -> list[Event]:
    """The whole lines of a record. A torn last line is what a crash leaves, and counts as not written."""
    with contextlib.suppress(FileNotFoundError):
        events: list[Event] = []
        lines = path.read_bytes().split(b"\n")[:-1]
        for number, line in enumerate(lines, 1):
            try:
                event = json.loads(line)
                events.append({**event, "event": str(event["event"]), "t": float(event["t"])})
            except (ValueError, KeyError, TypeError) as error:
                message = f"the record of the run is damaged: {error}"
                raise PorterError(Diagnostic(codes.RUN_CANNOT_RESUME, message, Span(str(path), number))) from error
        return events
    return []


def _cut_torn_line(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError), path.open("rb+") as file:
        data = file.read()
        end = data.rfind(b"\n") + 1
        if end != len(data):
            file.truncate(end)
