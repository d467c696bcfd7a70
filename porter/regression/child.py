"""The child process of porter.regression.all_ports: verifies one port at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from porter.batch.child import Parent, serve
from porter.config import PortConfig
from porter.model import Report
from porter.regression.one_port import verify_file
from porter.regression.settings import Settings


def prepare(parent: Parent, given: tuple[PortConfig, Settings]) -> Callable[[Path], Report]:
    config, settings = given
    if config.dsl:
        from porter.verify.compile.dsl_environments import environment
        from porter.verify.compile.worker import use_toolchain

        use_toolchain(environment(config.dsl))
    return lambda path: Report((verify_file(path, config, settings, parent.progress),))


if __name__ == "__main__":
    sys.exit(serve("verifying", prepare))
