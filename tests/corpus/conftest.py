"""Runs of the GPU tests in several processes, and the record of what they found.

`PORTER_TEST_SHARD=2/12` keeps the third of twelve parts of the tests; each part is a process of its own, so that
kernels compile side by side. `PORTER_GPU_NUMERICS=FOLDER` makes each process leave its results there;
`python -m tests.corpus.record FOLDER` writes them to bench/results.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part, _, parts = os.environ.get("PORTER_TEST_SHARD", "0/1").partition("/")
    kept, left = [], []
    for i, item in enumerate(items):
        (kept if i % int(parts) == int(part) else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


@pytest.fixture(scope="session")
def found() -> Iterator[Callable[[Any], None]]:
    """Keeps what a tally found (a tests.corpus.numerics.Row)."""
    rows: list[dict[str, Any]] = []
    yield lambda row: rows.append(asdict(row))
    folder = os.environ.get("PORTER_GPU_NUMERICS")
    if folder and rows:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{os.getpid()}.json").write_text(json.dumps(rows))
