"""`porter port --analyze`: finds kernels, survives children that crash or hang, and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from porter.batch import analysis
from porter.batch.analysis import AnalysisChild, KernelAnalysis, analyze_file, analyze_paths, count_codes, find_sources
from porter.config import PortConfig
from porter.verify.compile.toolkit import find_nvrtc

KERNEL = "__global__ void {0}(float* x) {{ x[threadIdx.x] = 1.0f; }}\n"

# A child that speaks the protocol and then does what the first word of the kernel's name says.
FAKE = """
import json, os, signal, sys, time

def say(event, **values):
    print(json.dumps({"event": event, **values}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    for name in open(request["path"]).read().split():
        if name in request["skip"]:
            continue
        found = {"id": name, "file": request["path"], "kernel": name, "line": 1, "parsed": True}
        say("kernel", **found)
        if name.startswith("crash"):
            os.kill(os.getpid(), signal.SIGSEGV)
        if name.startswith("hang"):
            time.sleep(60)
        if name.startswith("run"):
            say("known", lowered=True, emitted=True, compiled=True, holes={}, instances=["<1>"], code="", error="")
            if name.startswith("run_crash"):
                os.kill(os.getpid(), signal.SIGSEGV)
            if name.startswith("run_hang"):
                time.sleep(60)
            runs = [{"instance": "<1>", "outcome": name[4:], "how": "", "detail": "", "reached": 1.0}]
            say("result", **found, lowered=True, emitted=True, compiled=True, holes={}, instances=["<1>"], code="",
                error="", seconds=0.0, runs=runs)
            continue
        say("result", **found, lowered=True, emitted=True, holes={}, instances=[], code="", error="", seconds=0.0)
    say("done")
"""


def test_a_crash_and_a_hang_cost_one_kernel_each(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "fake_child.py").write_text(FAKE)
    (tmp_path / "k.cu").write_text("a crash1 b hang1 crash2 c")
    monkeypatch.syspath_prepend(tmp_path)
    child = AnalysisChild(PortConfig(), False, "fake_child")
    try:
        kernels, messages = analyze_file(child, tmp_path / "k.cu", time_limit=1.0)
    finally:
        child.close()
    assert [(k.kernel, k.clean, k.code) for k in kernels] == [
        ("a", True, ""),
        ("crash1", False, "PRT950"),
        ("b", True, ""),
        ("hang1", False, "PRT950"),
        ("crash2", False, "PRT950"),
        ("c", True, ""),
    ]
    assert "signal 11" in kernels[1].error and "did not finish within 1 s" in kernels[3].error
    assert messages == []


def test_a_kernel_that_ends_the_emulator_keeps_what_was_known_before(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "fake_child.py").write_text(FAKE)
    (tmp_path / "k.cu").write_text("run_equal run_crash run_hang run_differs")
    monkeypatch.syspath_prepend(tmp_path)
    child = AnalysisChild(PortConfig(), True, "fake_child", run_too=True)
    said: list[str] = []
    try:
        kernels, messages = analyze_file(child, tmp_path / "k.cu", time_limit=1.0, say=said.append)
    finally:
        child.close()
    assert [(k.kernel, k.clean, k.compiled, k.code, k.outcome) for k in kernels] == [
        ("run_equal", True, True, "", "equal"),
        ("run_crash", True, True, "", "not run"),
        ("run_hang", True, True, "", "not run"),
        ("run_differs", True, True, "", "differs"),
    ]
    assert "signal 11" in kernels[1].runs[0]["detail"] and "did not finish within 1 s" in kernels[2].runs[0]["detail"]
    assert [line.split(": ")[-1] for line in said] == ["equal", "differs"] and not messages


def test_a_kernel_is_as_good_as_its_worst_instance_that_could_be_judged() -> None:
    def outcome(*runs: str) -> str:
        return KernelAnalysis("f", "k", runs=tuple({"instance": "", "outcome": r} for r in runs)).outcome

    assert outcome() == ""
    assert outcome("equal", "differs", "not run") == "differs"
    assert outcome("original faults", "equal") == outcome("not run", "equal") == "equal"
    assert outcome("original faults", "not run") == "not run"


def test_sources_are_found_by_their_text(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/k.cuh").write_text(KERNEL.format("k"))
    (tmp_path / "a/host.h").write_text("int f();\n")
    (tmp_path / "z.cu").write_text(KERNEL.format("z"))
    assert find_sources([tmp_path, tmp_path / "z.cu"]) == [tmp_path / "a/k.cuh", tmp_path / "z.cu"]


def test_files_that_cannot_be_read_are_messages(tmp_path: Path) -> None:
    (tmp_path / "bad.cu").write_bytes(b"__global__ \xff\xfe")
    (tmp_path / "good.cu").write_text(KERNEL.format("good"))
    said: list[str] = []
    found = analyze_paths([tmp_path], PortConfig(jobs=1), 20.0, said.append)
    assert [k.kernel for k in found.kernels] == ["good"] and found.kernels[0].parsed
    assert [d.code for d in found.diagnostics] == ["PRT010"]
    assert len(said) == 2


def test_a_defect_in_one_file_is_a_message_and_the_others_are_done(tmp_path: Path, monkeypatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.cu").write_text(KERNEL.format(name))
    whole = analysis.analyze_file

    def broken(child: AnalysisChild, file: Path, *rest) -> analysis.FileAnalysis:
        if file.stem == "b":
            raise ZeroDivisionError("planted")
        return whole(child, file, *rest)

    monkeypatch.setattr(analysis, "analyze_file", broken)
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    found = analyze_paths([tmp_path], PortConfig(jobs=2), 20.0, lambda text: None)
    assert [k.kernel for k in found.kernels] == ["a", "c"] and found.files == 3
    (message,) = found.diagnostics
    assert message.code == "PRT950" and "planted" in message.message and f"{tmp_path}/b.cu" in message.message


def test_effort_and_codes() -> None:
    def kernel(**values) -> KernelAnalysis:
        return KernelAnalysis("f", "k", **values)

    whole = {"parsed": True, "lowered": True, "emitted": True}
    assert kernel(**whole).effort == "none"
    assert kernel(**whole, holes={"PRT501": 1}).effort == "minutes"
    assert kernel(**whole, holes={"PRT401": 1}).effort == "hours"
    assert kernel(**whole, holes={"PRT501": 9}).effort == "hours"
    assert kernel(parsed=True, code="PRT950").effort == "hours"
    assert kernel(code="PRT004").effort == "minutes"
    assert count_codes([kernel(holes={"PRT501": 3}), kernel(holes={"PRT501": 1, "PRT401": 1})]) == {
        "PRT501": 2,
        "PRT401": 1,
    }


def test_the_command_prints_a_table_and_writes_nothing(porter, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(KERNEL.format("one") + KERNEL.format("two"))
    done = porter("port", "--analyze", ".", "--jobs", "1")
    assert done.returncode == 0
    assert "k.cu:1" in done.stdout and "files 1, kernels 2, parsed 2" in done.stdout
    value = json.loads(porter("port", "--analyze", ".", "--output-format", "json").stdout)
    assert value["schema"] == 1 and value["totals"]["kernels"] == 2
    assert [k["kernel"] for k in value["kernels"]] == ["one", "two"]
    assert [p.name for p in tmp_path.iterdir()] == ["k.cu"]


def test_ports_are_run_beside_their_originals(porter, tmp_path: Path) -> None:
    pytest.importorskip("cutlass")
    if find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    (tmp_path / "k.cu").write_text(
        KERNEL.format("right") + "__global__ void wild(float* x, int n) { x[(long)n << 40] = 1.0f; }\n"
    )
    done = porter("port", "--analyze", "--run", "k.cu", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert [(k["compiled"], k["outcome"]) for k in value["kernels"]] == [(True, "equal"), (True, "original faults")]
    assert value["totals"]["equal"] == 1 and value["totals"]["original_faults"] == 1
    assert "k.cu:1: right: equal" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["k.cu"]


def test_nothing_found_is_2(porter, tmp_path: Path) -> None:
    assert porter("port", "--analyze", ".").returncode == 2
    gone = porter("port", "--analyze", "gone")
    assert gone.returncode == 2 and "PRT010" in gone.stderr
