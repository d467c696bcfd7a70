"""JUnit, SARIF, GitHub annotations and the HTML page of a run with a good port, a bad and an unreadable one."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from porter.config import PortConfig
from porter.model import Diagnostic, Hole, KernelReport, Report, Severity, Status, Verdict
from porter.model.facts import NumericsFacts, OutputErrors, PerformanceFacts
from porter.regression.all_ports import verify_ports
from porter.regression.charts import ulp_label
from porter.regression.findings import findings
from porter.regression.github import github
from porter.regression.junit import junit
from porter.regression.page import page
from porter.regression.sarif import sarif
from porter.regression.settings import Settings
from porter.source import Source, Span
from porter.verify.backends.gpu_timing import TimingAnswer
from porter.verify.backends.timing import Timing
from porter.verify.checks.performance import TimedRow

from .conftest import edit


@pytest.fixture(scope="module")
def verified(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """A folder and its report. first is wrong and has regressed, second is good, third cannot be read."""
    folder = tmp_path_factory.mktemp("outputs")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    edit(folder / "out/first.py", "* factor", "* factor * 1.0000001")
    (folder / "out/third.py").write_text("x = 1\n")
    (folder / "out/third.port.json").write_text("{")
    with contextlib.chdir(folder):
        return folder, verify_ports([Path("out")], PortConfig(arch=("sm_90a",), seed=3), Settings())


@pytest.fixture
def report(verified: tuple[Path, Report], monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report of `verified`, seen from its folder."""
    monkeypatch.chdir(verified[0])
    return verified[1]


def wrong_line() -> int:
    """The line of first.py that was made wrong."""
    lines = Path("out/first.py").read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if "1.0000001" in line)


def made_up() -> Report:
    """What the run above does not have: holes, notes, characters that XML and HTML must not see as they are, times."""
    source = Source(Path("a b/k.cu"), "")
    timing = Timing("original", {"original": [10.0] * 12, "again": [10.0] * 12, "port": [8.0] * 12})
    row = TimedRow("<8>", {"T": 64}, (1,), 4096, TimingAnswer(timings={"graph_cold": timing}))
    speed = Verdict("performance", Status.PASS, "0.8x", facts=PerformanceFacts("NVIDIA <H200>", (row.facts(),)))
    note = Diagnostic("PRT882", "100% of it:\x00\nnext, line", Span("a b/k.cu", 3, 5, 3, 9), Severity.NOTE, "look")
    errors = OutputErrors("within-bound", elements=100, different=30, max_ulp=5, ulps=(0, 20, 0, 8))
    numerics = Verdict("numerics", Status.PASS, "<b>", (note,), NumericsFacts(buffers={"<8>": {"out": errors}}))
    hole = Hole("PRT204", Span("a b/k.cu", 7), "x<<<y>>>", "no & no")
    bad = Verdict("sanitizer", Status.ERROR, "nothing was run")
    kernel = KernelReport(
        "k", source, (), "a b/k.py", (hole,), (numerics, bad, speed), (), {"parse": 0.5, "total": 1.0}
    )
    return Report((kernel,))


def test_junit_has_a_suite_a_port_and_a_case_a_check(report: Report) -> None:
    root = ElementTree.fromstring(junit(report))
    suites = {s.get("name"): s for s in root}
    assert set(suites) == {"out/first.py", "out/second.py", "porter"}
    first, second = suites["out/first.py"], suites["out/second.py"]
    assert [c.get("name") for c in second] == [v.check for v in report.kernels[1].verdicts]
    assert {c.get("name") for c in first if c.find("failure") is not None} == {"numerics", "regression"}
    assert (second.get("failures"), second.get("errors"), second.get("skipped")) == ("0", "0", "1")
    assert suites["porter"].get("errors") == "1"
    (failure,) = [c.find("failure") for c in first if c.get("name") == "numerics"]
    assert failure is not None and failure.get("type") == "PRT801"
    assert (failure.text or "").startswith(f"out/first.py:{wrong_line()}: PRT801 out: ")
    (worse,) = [c.find("failure") for c in first if c.get("name") == "regression"]
    assert worse is not None and "the fault that numerics shows" in (worse.text or "")
    for key in ("tests", "failures", "errors", "skipped"):
        assert root.get(key) == str(sum(int(s.get(key) or 0) for s in root))


def test_junit_of_what_xml_cannot_have() -> None:
    root = ElementTree.fromstring(junit(made_up()))
    names = {c.get("name"): c for c in root.iter("testcase")}
    assert names["hole 1"].find("failure").text.endswith("x<<<y>>>")  # type: ignore[union-attr]
    assert names["sanitizer"].find("error") is not None and names["numerics"].find("error") is None


# What sarif-schema-2.1.0.json requires of the objects that porter writes, and the keys that may be there beside.
OBJECTS: dict[str, tuple[set[str], set[str]]] = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"results", "invocations", "columnKind", "originalUriBaseIds"}),
    "driver": ({"name"}, {"version", "rules"}),
    "rule": ({"id"}, {"shortDescription", "help"}),
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "locations", "relatedLocations", "properties"}),
    "place": (set(), {"artifactLocation", "region"}),
    "artifact": (set(), {"uri", "uriBaseId"}),
    "region": (set(), {"startLine", "startColumn", "endLine", "endColumn"}),
    "invocation": ({"executionSuccessful"}, {"exitCode"}),
}


def conforms(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    required, optional = OBJECTS[kind]
    assert required <= set(value) <= required | optional, (kind, value)
    return value


def checked_sarif(text: str) -> dict[str, Any]:
    log = conforms("log", json.loads(text))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    conforms("run", run)
    assert set(run["tool"]) == {"driver"} and run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    rules = [conforms("rule", r) for r in conforms("driver", run["tool"]["driver"])["rules"]]
    assert len({r["id"] for r in rules}) == len(rules)
    for invocation in run["invocations"]:
        assert isinstance(conforms("invocation", invocation)["exitCode"], int)
    for base in run["originalUriBaseIds"].values():
        assert base["uri"].startswith("file:///") and base["uri"].endswith("/")
    for result in run["results"]:
        conforms("result", result)
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error") and result["message"]["text"]
        for location in (*result.get("locations", ()), *result.get("relatedLocations", ())):
            place = conforms("place", location["physicalLocation"])
            uri = conforms("artifact", place["artifactLocation"])["uri"]
            assert re.fullmatch(r"[\w.~!$&'()*+,;=:@/%-]+", uri)
            region = conforms("region", place.get("region", {}))
            assert all(isinstance(n, int) and n >= 1 for n in region.values())
    return run


def test_sarif(report: Report) -> None:
    run = checked_sarif(sarif(report))
    by_rule = {r["ruleId"]: r for r in run["results"]}
    assert {"PRT801", "PRT955"} <= set(by_rule) and not {"PRT881", "PRT805", "PRT843"} & set(by_rule)
    about_first = [r for r in run["results"] if r.get("properties", {}).get("kernel") == "first_kernel"]
    assert [r["level"] for r in about_first].count("error") == 1
    place = by_rule["PRT801"]["locations"][0]["physicalLocation"]
    assert (
        place["artifactLocation"] == {"uri": "out/first.py", "uriBaseId": "%SRCROOT%"}
        and place["region"]["startLine"] == wrong_line()
    )
    beside = by_rule["PRT801"]["relatedLocations"][0]
    assert beside["message"]["text"] == "the case" and beside["physicalLocation"]["region"]["startLine"] > 1
    assert run["invocations"][0] == {"executionSuccessful": False, "exitCode": 2}


def test_sarif_of_the_rest() -> None:
    run = checked_sarif(sarif(made_up()))
    found = {r["ruleId"]: r for r in run["results"]}
    assert set(found) == {"PRT204", "PRT882", "porter/sanitizer"}
    where = found["PRT882"]["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "a%20b/k.cu" and found["PRT882"]["level"] == "note"
    assert where["region"] == {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9}
    assert found["porter/sanitizer"]["message"]["text"] == "sanitizer ERROR: nothing was run"


def test_github_annotations(report: Report) -> None:
    *lines, last = github(report).splitlines()
    assert last.startswith("2 kernels") and len(lines) == len(list(findings(report)))
    for line in lines:
        assert re.fullmatch(r"::(error|warning|notice) [^:]+::.+", line), line
    wrong = next(line for line in lines if "PRT801" in line)
    assert wrong.startswith(f"::error file=out/first.py,line={wrong_line()},")
    assert "title=PRT801 first_kernel numerics" in wrong
    note = next(line for line in github(made_up()).splitlines() if "PRT882" in line)
    assert (
        note.startswith("::notice ")
        and "100%25 of it%3A" not in note
        and "100%25 of it:\x00%0Anext, line%0Ahelp: look" in note
    )


class Elements(HTMLParser):
    """Tags, text and references of a page; fails on tags that are not closed."""

    VOID = ("meta", "rect", "br")

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def references(self) -> Iterator[str]:
        for _, attributes in self.tags:
            yield from (v or "" for k, v in attributes.items() if k in ("src", "href", "data", "xlink:href"))


def test_the_page_stands_alone_and_says_everything_in_words(report: Report) -> None:
    found = Elements(page(report))
    assert all(r.startswith("#k") for r in found.references())
    assert not {"script", "link", "img", "iframe"} & {t for t, _ in found.tags}
    assert "url(" not in page(report).replace("url(#hatch)", "") and "@import" not in page(report)
    for word in ("✗ FAIL", "✓ PASS", "– SKIP", "PRT881", "PRT955", "out/second.py", "exit code 2"):
        assert word in found.text
    chart = next(a for t, a in found.tags if t == "svg" and "distance" in (a.get("aria-label") or ""))
    assert chart["role"] == "img" and (chart["aria-label"] or "").startswith("out: elements by distance")
    assert "equal" in found.text and "1 ulp" in found.text and "seconds by stage" in found.text


def test_the_page_of_the_rest() -> None:
    found = Elements(page(made_up()))
    for word in ("<b>", "x<<<y>>>", "time on NVIDIA <H200>, cold L2", "10.00 us", "8.00 us, 0.800x", "4 to 7 ulp"):
        assert word in found.text
    assert "no distance" in found.text and "2 (NaN, or integers)" in found.text
    assert Elements(page(Report(()))).text


def test_labels_of_distances() -> None:
    assert [ulp_label(n) for n in range(4)] == ["equal", "1 ulp", "2 to 3 ulp", "4 to 7 ulp"]


def test_the_command_prints_one_document_and_writes_the_page(porter, ports: Path) -> None:
    done = porter("verify", "out/first.py", "--output-format", "junit", "--html", "page.html", "--no-record")
    assert done.returncode == 0, done.stderr
    assert ElementTree.fromstring(done.stdout).get("tests") == "11"
    assert (ports.parent / "page.html").read_text().startswith("<!doctype html>")
    assert porter("verify", "out", "--html", "no/such/folder/page.html").returncode == 2


def test_the_hook_passes_over_what_is_no_port(porter, ports: Path) -> None:
    (ports / "other.py").write_text("x = 1\n")
    before = {p: p.read_bytes() for p in ports.iterdir() if p.is_file()}
    hook = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()
    entry = re.search(r"entry: porter (.*)", hook)
    assert entry
    done = porter(*entry[1].split(), "out/other.py", "out/second.port.json", "first.cu")
    assert done.returncode == 0, done.stderr
    assert "second_kernel" in done.stdout and "first_kernel" not in done.stdout
    assert {p: p.read_bytes() for p in ports.iterdir() if p.is_file()} == before
    assert porter(*entry[1].split(), "out/other.py").returncode == 0
