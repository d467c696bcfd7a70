"""The child's side of porter.batch.pool: pickled tasks in, events and reports out, one task at a time."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from porter.model import PorterError, Report
from porter.process.limits import watch_over
from porter.report.console import StageEvent
from porter.report.internal_errors import internal_error

ORPHAN_SECONDS = 0.5  # between two looks at whether the parent is still there


class Parent:
    """The process that gives the tasks."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # whatever libraries print must not mix with the answers

    def say(self, kind: str, value: object) -> None:
        pickle.dump((kind, value), self._answers)
        self._answers.flush()

    def hear(self) -> Any:
        """What the parent sends next. Raises EOFError when it is done, or gone."""
        return pickle.load(sys.stdin.buffer)

    def progress(self, event: StageEvent) -> None:
        self.say("event", event)


def serve(doing: str, prepare: Callable[[Parent, Any], Callable[[Path], Report]]) -> int:
    """Work on tasks until the parent has no more. Returns the exit code.

    `prepare` gets what the parent sends first, and gives the function that makes the report of a task. `doing`
    ("porting") is for messages.
    """
    parent = Parent()
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    watch_over(lambda what, span: parent.say("doing", (what, span)))
    try:
        report_of = prepare(parent, parent.hear())
        while True:
            task: Path = parent.hear()
            try:
                report = report_of(task)
            except PorterError as error:
                report = Report((), error.diagnostics)
            except (EOFError, BrokenPipeError):
                raise
            except Exception as error:
                report = Report((), (internal_error(error, traceback.format_exc(), f"{doing} {task}"),))
            parent.say("report", report)
    except (EOFError, BrokenPipeError):
        return 0  # the parent is done, or gone
    except KeyboardInterrupt:
        return 130


def _end_with(parent: int) -> None:
    """End when the parent is gone without a word (kill -9): nobody would read the answer, and another run may begin."""
    while os.getppid() == parent:
        time.sleep(ORPHAN_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)  # lets the main thread end its own children
    time.sleep(3)
    os._exit(1)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
