"""Several files in one run: two processes, the same answers in the order of the files, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from porter.batch import port_files
from porter.config import PortConfig
from porter.report.console import StageEvent

from .conftest import default_sigint
from .test_bad_input import CASE, SCALE

NAMES = ("first", "second", "third", "fourth")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Four files, each with a kernel of its own name and its case, in the working folder."""
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        Path(f"{name}.cu").write_text(SCALE.replace("scale_kernel", f"{name}_kernel"))
        Path(f"{name}.case.toml").write_text(CASE.replace("scale_kernel", f"{name}_kernel"))
    return [Path(f"{name}.cu") for name in NAMES]


def config(folder: str, jobs: int, **more: object) -> PortConfig:
    return PortConfig(output=Path(folder), arch=("sm_90a",), verify=False, jobs=jobs, **more)  # type: ignore[arg-type]


def test_the_report_is_that_of_one_file_after_the_other(files: list[Path]) -> None:
    files[1].write_text("__device__ void broken( {\n")
    one, two = (port_files.port_all(files, config(f"out{jobs}", jobs)) for jobs in (1, 2))
    assert [k.kernel for k in two.kernels] == ["first_kernel", "third_kernel", "fourth_kernel"]
    assert [(k.kernel, k.instances, k.holes) for k in one.kernels] == [
        (k.kernel, k.instances, k.holes) for k in two.kernels
    ]
    assert [str(d) for d in one.diagnostics] == [str(d) for d in two.diagnostics] and two.diagnostics
    for name in ("first", "third", "fourth"):
        assert Path(f"out1/{name}.py").read_text() == Path(f"out2/{name}.py").read_text()


def test_verified_in_two_processes(porter, files: list[Path]) -> None:
    done = porter("port", *files[:2], "-o", "out", "--arch", "sm_90a", "--jobs", "2", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["kernels"]
    assert [k["kernel"] for k in found] == ["first_kernel", "second_kernel"] and all(k["verified"] for k in found)
    assert all(k["seconds"]["original"] > 0 and k["seconds"]["numerics"] > 0 for k in found)


def test_the_earlier_file_keeps_a_name_that_two_want(files: list[Path]) -> None:
    other = Path("other")
    other.mkdir()
    # parsed sooner than the file before it, which is much longer
    files[0].write_text(files[0].read_text() + "\n" + "\n".join(f"int number_{n}();" for n in range(20_000)))
    (other / "first.cu").write_text(SCALE)
    (other / "first.case.toml").write_text(CASE)
    report = port_files.port_all([files[0], other / "first.cu"], config("out", 2))
    assert [k.kernel for k in report.kernels] == ["first_kernel"]
    (message,) = report.diagnostics
    assert message.code == "PRT957" and message.span.file == "other/first.cu"


def test_a_process_that_dies_costs_one_file(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[port_files.PoolChild] = []
    start = port_files.PoolChild.__init__

    def recorded(self: port_files.PoolChild, *arguments: object) -> None:
        children.append(self)
        start(self, *arguments)

    monkeypatch.setattr(port_files.PoolChild, "__init__", recorded)
    killed: list[str] = []

    def kill(event: StageEvent) -> None:
        if not killed:
            killed.append(event.kernel)
            for child in children:
                os.kill(child.process.pid, signal.SIGKILL)  # libclang would survive SIGSEGV while it parses

    report = port_files.port_all(files, config("out", 2), kill)
    codes = [d.code for d in report.diagnostics]
    assert 1 <= len(codes) <= 2 and set(codes) == {"PRT968"} and "SIGKILL" in report.diagnostics[0].message
    assert len(report.kernels) == len(files) - len(codes)
    assert killed[0] not in [k.kernel for k in report.kernels]


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_every_process_ends_with_the_command(files: list[Path], tmp_path: Path, how: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "porter.cli", "port", *map(str, files), "-o", "out", "--jobs", "2"]
    # porter's children carry this in their environment, which tells them from those of other tests
    mark = f"CUDA_PORTER_TEST={tmp_path}"
    environment = os.environ | dict([mark.split("=", 1)])
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=default_sigint
    ) as run:
        try:
            assert run.stderr
            for line in run.stderr:
                if re.match(r"\w+_kernel: emit ok", line):
                    break
            assert len(marked(mark)) > 1
            run.send_signal(how)
            assert run.wait(60) == code
        finally:
            run.kill()
    limit = time.monotonic() + 60
    while marked(mark) and time.monotonic() < limit:
        time.sleep(0.1)
    assert marked(mark) == []
    assert not any(p.suffix == ".tmp" for p in Path("out").glob("*"))


def marked(mark: str) -> list[int]:
    """Processes whose environment has `mark`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found
