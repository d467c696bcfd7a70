"""What benches on a GPU write: no folder of the machine that they ran on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.gpu_verdicts import ROOT, recorded, without_folders
from porter.model import Diagnostic, Severity, Status, Verdict
from porter.model.facts import Facts
from porter.source import Span

RESULTS = ROOT / "bench" / "results"
BUNDLE = Path("/srv/made/bundle")


@pytest.mark.parametrize(
    "text, kept",
    [
        ("/srv/made/bundle/cases/k.case.toml", "cases/k.case.toml"),
        ("see /srv/made/bundle/ports/k.py:3, /srv/made/bundle/k.json", "see ports/k.py:3, k.json"),
        (f"{ROOT}/reference_kernels/norm/k.cu", "reference_kernels/norm/k.cu"),
        ("/srv/made/bundles/k.py", "/srv/made/bundles/k.py"),
        ("/other/srv/made/bundle/k.py", "/other/srv/made/bundle/k.py"),
    ],
)
def test_paths_are_relative_to_the_bundle_or_the_repository(text, kept):
    note = Diagnostic("PRT809", text, Span(text, 3, 1), Severity.NOTE, text)
    (row,) = recorded([Verdict("numerics", Status.PASS, text, (note,), Facts(rest={"at": [text]}))], BUNDLE)
    assert (row["detail"], row["data"], row["check"]) == (kept, {"at": [kept]}, "numerics")
    (told,) = row["diagnostics"]
    assert (told["span"]["file"], told["message"], told["help"]) == (kept, kept, kept)


def test_a_folder_inside_another_is_taken_first():
    assert without_folders("/a/b/c.py /a/d.py", Path("/a"), Path("/a/b")) == "c.py d.py"


@pytest.mark.parametrize("name", [p.name for p in sorted(RESULTS.glob("*.json"))])
def test_no_result_names_a_folder_of_a_machine(name):
    found = re.findall(r'(?<![\w./~-])/(?:root|home|tmp|work|srv|mnt)/[^"]*', (RESULTS / name).read_text())
    assert not found and json.loads((RESULTS / name).read_text())
