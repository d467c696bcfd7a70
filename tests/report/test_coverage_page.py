"""docs/coverage.md and the README say what bench/results/coverage.json holds; a part of it can be measured anew."""

from __future__ import annotations

import copy
import json
import re

from tools.coverage_table import FILES, PAGE, RESULTS, ROOT, compiled, page, updated

FOUND = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_made_from_the_results():
    assert PAGE.read_text(encoding="utf-8") == page(FOUND)


def test_the_readme_has_the_counts_of_the_results():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    counts = re.search(r"Of (\d+) kernels in (\d+) files of ten public projects, (\d+) .*? and (\d+) of", text, re.S)
    kernels = FOUND["kernels"]
    whole = sum(k["emitted"] and not k["holes"] for k in kernels)
    assert counts is not None
    assert [int(n) for n in counts.groups()] == [len(kernels), FOUND["files"], whole, sum(map(compiled, kernels))]


def test_rows_of_files_that_were_run_again_take_the_place_of_theirs():
    file = "vllm/csrc/pos_encoding_kernels.cu"
    new = copy.deepcopy(FOUND)
    new["kernels"] = [{**k, "code": "PRT999"} for k in FOUND["kernels"] if k["file"] == file]
    new |= {"commits": ["fffffff"], "missing": [f"{r}/{n}" for r, names in FILES.items() for n in names if r == "apex"]}
    both = updated(FOUND, new, [file])
    assert [k["file"] for k in both["kernels"]] == [k["file"] for k in FOUND["kernels"]]
    assert {k["file"] for k in both["kernels"] if k["code"] == "PRT999"} == {file}
    assert both["commits"] == sorted({*FOUND["commits"], "fffffff"}) and both["files"] == FOUND["files"]
