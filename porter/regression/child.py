"""The child process of porter.regression.all_ports: pickled ports in, events and reports out. One port at a time."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from porter.config import PortConfig
from porter.model import PorterError, Report
from porter.process.limits import watch_over
from porter.regression.one_port import verify_file
from porter.regression.settings import Settings
from porter.report.console import StageEvent
from porter.report.internal_errors import internal_error

ORPHAN_SECONDS = 0.5  # between two looks at whether the parent is still there


def main() -> int:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print must not mix with the answers
    requests = sys.stdin.buffer
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()

    def say(kind: str, value: object) -> None:
        pickle.dump((kind, value), answers)
        answers.flush()

    def progress(event: StageEvent) -> None:
        say("event", event)

    watch_over(lambda doing, span: say("doing", (doing, span)))
    try:
        config: PortConfig
        settings: Settings
        config, settings = pickle.load(requests)
        if config.dsl:
            from porter.verify.compile.dsl_environments import environment
            from porter.verify.compile.worker import use_toolchain

            use_toolchain(environment(config.dsl))
        while True:
            path: Path = pickle.load(requests)
            try:
                report = Report((verify_file(path, config, settings, progress),))
            except PorterError as error:
                report = Report((), error.diagnostics)
            except (EOFError, BrokenPipeError):
                raise
            except Exception as error:
                report = Report((), (internal_error(error, traceback.format_exc(), f"verifying {path}"),))
            say("report", report)
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


if __name__ == "__main__":
    sys.exit(main())
