"""A `porter verify` that is killed half-way: the next one goes on, no baseline is lost, nobody is left running."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from porter.config import PortConfig
from porter.model import KernelReport
from porter.provenance.store import read_record
from porter.regression.all_ports import verify_ports
from porter.regression.run_record import RunRecord, kernel_from_json
from porter.regression.settings import Settings
from porter.report.console import kernel_to_json
from tests.cli.conftest import default_sigint
from tests.cli.test_parallel import marked

from .conftest import NAMES


def records(ports: Path) -> list[Path]:
    return list((ports / ".porter").glob("verify-*.jsonl"))


def start(ports: Path) -> tuple[subprocess.Popen[str], str]:
    """`porter verify out`, one port at a time, and the mark in the environment of its processes."""
    mark = f"CUDA_PORTER_TEST={ports}"
    command = [sys.executable, "-m", "porter.cli", "verify", "out", "--jobs", "1"]
    environment = os.environ | dict([mark.split("=", 1)]) | {"NO_COLOR": "1"}
    run = subprocess.Popen(
        command,
        cwd=ports.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=default_sigint,
    )
    return run, mark


def wait_for(run: subprocess.Popen[str], event: str) -> None:
    assert run.stderr
    for line in run.stderr:
        if re.match(event, line):
            return
    raise AssertionError(f"no {event!r} before the end")


def nobody_left(mark: str) -> bool:
    limit = time.monotonic() + 30
    while marked(mark) and time.monotonic() < limit:
        time.sleep(0.1)
    return marked(mark) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_is_gone_on_with(porter, ports: Path, how: signal.Signals) -> None:
    before = {name: read_record(ports / f"{name}.py") for name in NAMES}
    run, mark = start(ports)
    try:
        wait_for(run, "second: parse ok")  # the first is finished
        run.send_signal(how)
        assert run.wait(60) == (130 if how is signal.SIGINT else -how)
    finally:
        run.kill()
        if run.stderr:
            run.stderr.close()
    assert nobody_left(mark)
    assert len(records(ports)) == 1
    for name in NAMES:
        record = read_record(ports / f"{name}.py")
        assert record is not None and before[name] is not None
        assert record.baseline == before[name].baseline != {}
    assert not list(ports.glob(".*.tmp"))
    again = porter("verify", "out", "--jobs", "1")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "1 of 2 ports verified by an earlier run" in again.stderr
    assert "first: numerics" not in again.stderr and "second: numerics PASS" in again.stderr
    assert again.stdout.count("numerics    PASS") == 2  # what was taken over is reported like the rest
    assert records(ports) == []


@pytest.fixture
def noted(ports: Path, kernel: KernelReport) -> RunRecord:
    """The run record as a kill after the first port leaves it."""
    record = RunRecord(PortConfig(jobs=1), Settings())
    record.add(ports / "first.py", kernel)
    return record


@pytest.fixture(scope="module")
def kernel(made: Path) -> KernelReport:
    """A report of the first port."""
    with contextlib.chdir(made):
        config = PortConfig(arch=("sm_90a",), jobs=1)
        return verify_ports([Path("out/first.py")], config, Settings(record=False)).kernels[0]


def taken_over(ports: Path, config: PortConfig | None = None, settings: Settings | None = None) -> list[str]:
    """The ports that a run with these parameters would not verify again."""
    record = RunRecord(config or PortConfig(jobs=1), settings or Settings())
    return [name for name in NAMES if record.finished(ports / f"{name}.py")]


def test_what_is_taken_over(ports: Path, noted: RunRecord) -> None:
    assert taken_over(ports) == ["first"]
    assert taken_over(ports, PortConfig(jobs=8), Settings(timeout=5, fresh=True)) == ["first"]  # the same question
    for config in (PortConfig(seed=5), PortConfig(thorough=True), PortConfig(backend="emulator")):
        assert taken_over(ports, config) == []
    assert taken_over(ports, settings=Settings(against="original")) == []
    noted.drop([ports / "first.py"])
    assert taken_over(ports) == [] and records(ports) == []


@pytest.mark.parametrize("changed", ["out/first.py", "first.cu", "first.case.toml", "out/first.port.json"])
def test_what_has_changed_is_verified_again(ports: Path, noted: RunRecord, changed: str) -> None:
    path = ports.parent / changed
    text = path.read_text()
    path.write_text(
        text.replace('"arches": [', '"arches": [\n  "sm_100a",') if changed.endswith("json") else text + "\n"
    )
    assert path.read_text() != text and taken_over(ports) == []


def test_a_line_that_was_cut_off_costs_its_port_only(ports: Path, noted: RunRecord) -> None:
    (path,) = records(ports)
    path.write_bytes(path.read_bytes() + b'{"port": "second.py", "fingerp')
    assert taken_over(ports) == ["first"]
    path.write_bytes(path.read_bytes()[:200])
    assert taken_over(ports) == []


def test_verdicts_of_somebody_else_are_not_taken_over(ports: Path, noted: RunRecord) -> None:
    (path,) = records(ports)
    text = path.read_text()
    assert '"status": "PASS"' in text
    path.write_text(text.replace("bit-equal", "bit-equaI", 1))
    assert taken_over(ports) == []
    row = json.loads(text)
    del row["signature"]
    path.write_text(json.dumps(row) + "\n" + json.dumps(row | {"signature": "0" * 64}) + "\n[1]\n")
    assert taken_over(ports) == []
    path.write_text(text)
    assert taken_over(ports) == ["first"]


def test_a_run_of_last_week_is_over(ports: Path, noted: RunRecord) -> None:
    os.utime(records(ports)[0], (0, 0))
    assert taken_over(ports) == [] and records(ports) == []


def test_a_report_survives_json(made: Path, kernel: KernelReport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    assert kernel_to_json(kernel_from_json(kernel_to_json(kernel))) == kernel_to_json(kernel)
