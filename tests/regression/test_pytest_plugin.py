"""`pytest --porter`: an item for each port and check, judged as `porter verify` judges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from porter.provenance.record import record_path

from .conftest import edit


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "porter.pytest_plugin", *arguments]
    if installed():
        del command[5:7]
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"COLUMNS": "200"}, capture_output=True, text=True, timeout=240
    )


def installed() -> bool:
    """Whether pytest finds the plugin by itself (an installation made before the entry point was added has none)."""
    from importlib.metadata import entry_points

    return any(e.value == "porter.pytest_plugin" for e in entry_points(group="pytest11"))


def test_an_item_for_each_port_and_check(ports: Path) -> None:
    edit(ports / "first.py", "* factor", "* factor * 1.0000001")
    before = record_path(ports / "first.py").read_bytes()
    (ports.parent / "test_other.py").write_text("def test_other():\n    raise SystemError('not asked for')\n")
    done = run(ports.parent, "--porter", "out", "-q", "-rA", "--porter-seed", "3")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 18 passed, 2 skipped" in done.stdout, done.stdout
    assert "FAILED out/first.py::numerics" in done.stdout and "FAILED out/first.py::regression" in done.stdout
    assert "PASSED out/second.py::numerics" in done.stdout and "needs a GPU" in done.stdout
    assert "PRT801" in done.stdout and "first.case.toml" in done.stdout and "Traceback" not in done.stdout
    assert "not asked for" not in done.stdout
    assert record_path(ports / "first.py").read_bytes() == before  # tests record nothing


def test_a_port_named_by_file_with_other_tests_and_a_choice_of_checks(ports: Path) -> None:
    (ports.parent / "test_other.py").write_text("def test_other():\n    pass\n")
    done = run(ports.parent, "test_other.py", "--porter", "out/second.py", "-q", "-rA", "-k", "other or numerics")
    assert done.returncode == 0 and "2 passed, 10 deselected" in done.stdout, done.stdout + done.stderr


def test_an_unreadable_record_is_an_error_of_every_check(ports: Path) -> None:
    record_path(ports / "second.py").write_text("{")
    done = run(ports.parent, "--porter", "out/second.py", "-q")
    assert done.returncode == 1 and "11 failed" in done.stdout and "PRT955" in done.stdout


def test_what_only_the_record_says_fails_whatever_is_chosen(ports: Path) -> None:
    record = json.loads(record_path(ports / "second.py").read_text())
    record["options"]["define"] = ["factor=1.0f"]
    record_path(ports / "second.py").write_text(json.dumps(record))
    done = run(ports.parent, "--porter", "out/second.py", "-q", "-k", "numerics or performance")
    assert done.returncode == 1 and "2 failed, 9 deselected" in done.stdout and "PRT966" in done.stdout, done.stdout
    (ports.parent / "first.case.toml").write_text((ports.parent / "first.case.toml").read_text() + "# milder\n")
    done = run(ports.parent, "--porter", "out/first.py", "-q", "-k", "numerics")
    assert done.returncode == 1 and "1 failed" in done.stdout and "PRT959" in done.stdout, done.stdout


def test_without_the_option_ports_are_left_alone(ports: Path) -> None:
    done = run(ports.parent, "--collect-only", "-q")
    assert "numerics" not in done.stdout and done.returncode == 5
