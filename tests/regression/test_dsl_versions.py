"""Ports against several versions of CuTeDSL: the matrix, the search for the version that changed an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from porter.model import Diagnostic, KernelReport, PorterError, Status, Verdict
from porter.regression.dsl_matrix import JUDGED, Cell, Matrix, cell_of, find_changes, matrix_text, matrix_to_json
from porter.source import Source
from porter.verify.compile.dsl_environments import environment, order, pins

from .conftest import edit

KNOWN = ("4.6.0", "4.6.3", "4.7.0", "4.7.1", "4.8.0", "4.8.1", "4.10.0")


def cell(version: str, ok: bool) -> Cell:
    return Cell(version, ok, "" if ok else "names", "" if ok else "no such name")


@pytest.mark.parametrize("broken_in", KNOWN[1:])
@pytest.mark.parametrize("fixes", [False, True])
def test_the_version_that_changed_the_answer_is_found(broken_in: str, fixes: bool) -> None:
    asked: list[str] = []

    def answer(version: str) -> Cell:
        return cell(version, (order(version) < order(broken_in)) != fixes)

    def verify(ports: Sequence[Path], version: str) -> dict[str, Cell]:
        asked.append(version)
        return {str(p): answer(version) for p in ports}

    ends = [KNOWN[0], KNOWN[-1]]
    rows = {"a.py": {v: answer(v) for v in ends}, "good.py": {v: cell(v, True) for v in ends}}
    (change,) = find_changes(rows, ends, KNOWN, verify)
    assert (change.port, change.after.version) == ("a.py", broken_in)
    assert change.before.version == KNOWN[KNOWN.index(broken_in) - 1] and change.before.ok is not fixes
    assert len(asked) <= 3 and "4.10.0" not in asked  # halving, and never what is known


def test_versions_that_cannot_be_installed_are_passed_over() -> None:
    def verify(ports: Sequence[Path], version: str) -> dict[str, Cell]:
        if version in ("4.7.0", "4.7.1"):
            raise PorterError(Diagnostic("PRT880", "no build for this Python"))
        return {str(p): cell(version, order(version) < order("4.8.0")) for p in ports}

    rows = {"a.py": {v: cell(v, v == "4.6.3") for v in ("4.6.3", "4.8.1")}}
    (change,) = find_changes(rows, ["4.6.3", "4.8.1"], KNOWN, verify)
    assert (change.before.version, change.after.version) == ("4.6.3", "4.8.0")


def test_cells_and_the_exit_code() -> None:
    good = tuple(Verdict(check, Status.PASS) for check in JUDGED)
    kernel = KernelReport("k", Source(Path("k.cu"), ""), port_path="k.py", verdicts=good)
    assert cell_of(kernel, "4.7.1").ok
    failed = KernelReport(
        "k", Source(Path("k.cu"), ""), verdicts=(*good[:3], Verdict("compile", Status.FAIL, "no\nmore"))
    )
    assert cell_of(failed, "4.7.1") == Cell("4.7.1", False, "compile", "no")
    found = Matrix(
        ["4.7.1", "4.8.1"], {"out/k.py": {"4.7.1": cell_of(failed, "4.7.1"), "4.8.1": cell_of(kernel, "4.8.1")}}
    )
    assert found.exit_code == 1 and matrix_to_json(found)["exit_code"] == 1
    text = matrix_text(found)
    assert "compile FAIL" in text and "PASS" in text and "1 port, 0 passing" in text
    found.rows["out/k.py"]["4.7.1"] = cell_of(kernel, "4.7.1")
    assert found.exit_code == 0


def test_what_is_no_version_is_refused() -> None:
    for wrong in ("latest", "4.8; rm", "../4.8.1", "-4.8.1"):
        with pytest.raises(PorterError) as error:
            environment(wrong)
        assert error.value.diagnostics[0].code == "PRT880"


def test_environments_share_the_installed_versions_but_the_dsl() -> None:
    found = pins()
    assert any(p.startswith("numpy==") for p in found)
    assert not any(p.startswith(("nvidia-cutlass-dsl", "cuda-bindings", "porter==")) for p in found)


def test_bisect_needs_two_versions(porter, ports: Path) -> None:
    assert porter("verify", "out", "--bisect").returncode == 2
    assert porter("verify", "out", "--dsl", "4.8.1", "--bisect").returncode == 2
    assert porter("verify", "out", "--dsl", "4.8.1", "--update").returncode == 2


@pytest.mark.slow
def test_two_versions_and_the_one_that_has_a_name(porter, ports: Path) -> None:
    """Downloads two versions of CuTeDSL. `cute.arch.fma_f16` came with 4.8.0."""
    before = (ports / "first.port.json").read_bytes()
    edit(
        ports / "second.py", "import cutlass.cute as cute\n", "import cutlass.cute as cute\n\nNEW = cute.arch.fma_f16\n"
    )
    done = porter("verify", "out", "--dsl", "4.6.3,4.8.1", "--bisect", "--output-format", "json", timeout=1800)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["versions"] == ["4.6.3", "4.8.1"]
    answers = {Path(p["port"]).stem: [(c["ok"], c["check"]) for c in p["cells"]] for p in found["ports"]}
    assert answers == {"first": [(True, ""), (True, "")], "second": [(False, "names"), (True, "")]}
    (change,) = found["changes"]
    assert (change["before"]["version"], change["after"]["version"]) == ("4.7.1", "4.8.0")
    assert (ports / "first.port.json").read_bytes() == before  # nothing is recorded
