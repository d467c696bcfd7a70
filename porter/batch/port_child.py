"""The child process of porter.batch.port_files: pickled paths in, events, claims and reports out. Ports one file at a
time."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from porter.config import PortConfig
from porter.model import PorterError, Report
from porter.pipeline.outputs import Conflict
from porter.pipeline.stages import port
from porter.process.limits import watch_over
from porter.report.console import StageEvent
from porter.report.internal_errors import internal_error


def main() -> int:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print must not mix with the answers
    requests = sys.stdin.buffer
    signal.signal(signal.SIGTERM, _interrupt)

    def say(kind: str, value: object) -> None:
        pickle.dump((kind, value), answers)
        answers.flush()

    def claim(ports: Sequence[Path], source: Path) -> Conflict | None:
        say("claim", (list(ports), source))
        return pickle.load(requests)

    def progress(event: StageEvent) -> None:
        say("event", event)

    watch_over(lambda doing, span: say("doing", (doing, span)))
    try:
        config: PortConfig = pickle.load(requests)
        if config.verify:
            from porter.verify.compile.worker import warm

            warm()
        while True:
            path: Path = pickle.load(requests)
            try:
                report = port(path, config, progress, claim)
            except PorterError as error:
                report = Report((), error.diagnostics)
            except (EOFError, BrokenPipeError):
                raise
            except Exception as error:
                report = Report((), (internal_error(error, traceback.format_exc(), f"porting {path}"),))
            say("report", report)
    except (EOFError, BrokenPipeError):
        return 0  # the parent is done, or gone
    except KeyboardInterrupt:
        return 130


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
