"""The child process of porter.batch.port_files: ports one file at a time, and asks which ports it may write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from porter.batch.child import Parent, serve
from porter.config import PortConfig
from porter.model import Report
from porter.pipeline.outputs import Conflict
from porter.pipeline.stages import port


def prepare(parent: Parent, config: PortConfig) -> Callable[[Path], Report]:
    def claim(ports: Sequence[Path], source: Path) -> Conflict | None:
        parent.say("claim", (list(ports), source))
        return parent.hear()

    if config.verify:
        from porter.verify.compile.worker import warm

        warm()
    return lambda path: port(path, config, parent.progress, claim)


if __name__ == "__main__":
    sys.exit(serve("porting", prepare))
