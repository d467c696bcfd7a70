"""Regions, decisions and what they do to a port, without a terminal."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from porter.cli import main
from porter.config import PortConfig
from porter.model import PorterError
from porter.provenance.record import record_path
from porter.provenance.store import read_record, update_record
from porter.review.page import page
from porter.review.plain import check, review_plain
from porter.review.port.actions import accept, add_comment, edit, reject, withdraw
from porter.review.port.decisions import read_draft, save_draft
from porter.review.port.regions import Region, regions_of
from porter.review.port.reviewed_port import ReviewedPort, load

from .conftest import KERNEL, with_verdicts


def region_with(loaded: ReviewedPort, text: str) -> Region:
    return next(r for r in loaded.regions if text in loaded.port_text(r))


def accept_all(port: Path) -> ReviewedPort:
    loaded = load(port)
    for name in [r.name for r in loaded.regions]:
        loaded = accept(loaded, next(r for r in loaded.regions if r.name == name))
    return loaded


def test_regions_hold_every_line_once(port: Path):
    loaded = load(port)
    lines = [n for r in loaded.regions for n in range(r.first, r.last + 1)]
    assert len(lines) == len(set(lines))
    assert set(lines) >= {n for n, t in enumerate(loaded.port_lines, 1) if t.strip()}
    assert len({r.name for r in loaded.regions}) == len(loaded.regions)


def test_a_region_knows_its_cuda_lines(port: Path):
    loaded = load(port)
    region = region_with(loaded, "if i < n")
    assert region.function == "scale_kernel" and region.kind == "statements"
    assert "if (i < n)" in loaded.cuda_text(region) and "twice(in[i])" in loaded.cuda_text(region)
    pairs = loaded.pairs(region)
    assert [n for _, ported in pairs for n in ported] == list(range(region.first, region.last + 1))
    assert loaded.region_of_cuda(10) == region


def test_text_that_is_no_python_has_regions_too(port: Path):
    port.write_text(port.read_text() + "\ndef broken(:\n")
    loaded = load(port)
    assert {r.kind for r in loaded.regions} == {"text"}
    assert regions_of("", ()) == ()


def test_long_loops_are_opened_and_else_belongs_to_its_block():
    body = "".join(f"        x = x + {n}\n" for n in range(20))
    text = f"@cute.kernel\ndef k(x):\n    if x > 1:\n{body}    else:\n        x = 1\n    y = x\n"
    regions = regions_of(text, ())
    head = next(r for r in regions if r.kind == "head")
    lines = text.splitlines()
    assert lines[head.first - 1] == "    if x > 1:" and head.hole_lines == (3, 25)
    other = next(r for r in regions if lines[r.first - 1] == "    else:")
    assert other.hole_lines == (25, 25)


def test_accepting_is_saved_at_once_with_who_when_and_what(port: Path):
    loaded = load(port)
    region = region_with(loaded, "if i < n")
    made = accept(loaded, region, "read twice")
    (row,) = json.loads(record_path(port).read_text())["review"]["decisions"]
    assert (
        row["state"] == "accepted" and row["by"] == "Ada" and row["comment"] == "read twice" and row["at"].endswith("Z")
    )
    assert row["sha256"] == loaded.digest_of(region) and made.state(region) == "accepted"
    assert made.state(region_with(made, "def twice")) == "open"


def test_a_decision_survives_a_move_and_is_stale_after_a_change(port: Path):
    region = region_with(load(port), "if i < n")
    accept(load(port), region)
    port.write_text("# a line above\n" + port.read_text())
    moved = load(port)
    assert moved.state(region_with(moved, "if i < n")) == "accepted"
    port.write_text(port.read_text().replace("if i < n", "if i <= n"))
    changed = load(port)
    assert changed.state(region_with(changed, "if i <= n")) == "stale"
    assert "person" in region_with(changed, "if i <= n").authors


def test_a_decision_is_stale_when_its_cuda_changed(folder: Path, port: Path):
    loaded = load(port)
    accept(loaded, region_with(loaded, "if i < n"))
    accept(load(port), region_with(loaded, "def twice"))
    source = folder / "scale.cu"
    source.write_text(source.read_text().replace("* factor", "* factor * factor"))
    changed = load(port)
    assert [d.code for d in changed.faults] == ["PRT958"]
    assert changed.state(region_with(changed, "if i < n")) == "stale"
    assert changed.state(region_with(changed, "def twice")) == "accepted"


def test_lines_of_the_source_move_without_git(folder: Path, port: Path):
    """The record keeps the CUDA that was ported, so decisions follow their lines, and stale ones say what was there."""
    record = read_record(port)
    assert record is not None and record.source_text == KERNEL
    assert sum('"source_text"' in line for line in record_path(port).read_text().splitlines()) == 1
    accept(load(port), region_with(load(port), "if i < n"))
    accept(load(port), region_with(load(port), "w = v"))
    source = folder / "scale.cu"
    source.write_text("// a new first line\n\n" + KERNEL.replace("v * 2.0f", "v + v"))
    loaded = load(port)
    assert loaded.ported_cuda == KERNEL and [d.code for d in loaded.faults] == ["PRT958"]
    region = region_with(loaded, "if i < n")
    assert loaded.cuda_now(region) == (11, 12, 13) and loaded.state(region) == "accepted"
    assert loaded.region_of_cuda(12) == region and loaded.state(region_with(loaded, "w = v")) == "stale"
    source.unlink()
    gone = load(port)
    assert [d.code for d in gone.faults] == ["PRT961"] and gone.cuda_lines == KERNEL.splitlines()
    assert gone.state(region_with(gone, "if i < n")) == "accepted" and not gone.complete


def test_an_edit_is_undone_with_the_source_that_was_ported(folder: Path, port: Path):
    before = port.read_text()
    loaded = edit(load(port), region_with(load(port), "if i < n"), "    if i <= n:\n        out[i] = 0.0")
    (folder / "scale.cu").write_text("// upstream\n" + KERNEL.replace("* factor", "* factor * factor"))
    loaded = load(port)
    reject(loaded, region_with(loaded, "i <= n"), config=PortConfig())
    assert port.read_text() == before


@pytest.mark.parametrize("text", ["no base64!", "aGVsbG8=", "eJw="])
def test_a_damaged_source_text_is_named(port: Path, text: str):
    update_record(port, lambda r: replace(r, source_text="", extra={**r.extra, "source_text": text}))
    (fault,) = load(port).faults
    assert fault.code == "PRT955" and "source_text" in fault.message


def test_the_ported_text_of_an_older_record_is_found_in_git(folder: Path, port: Path):
    update_record(port, lambda r: replace(r, source_text=""))
    accept(load(port), region_with(load(port), "if i < n"))
    source = folder / "scale.cu"
    source.write_text("// a new first line\n" + KERNEL)
    assert load(port).ported_cuda is None and "nor in the last" in load(port).faults[0].help
    source.write_text(KERNEL)
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for command in (["init", "-q"], ["add", "scale.cu"], [*who, "commit", "-qm", "kernel"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    source = folder / "scale.cu"
    source.write_text("// a new first line\n" + KERNEL)
    loaded = load(port)
    assert loaded.ported_cuda == KERNEL
    region = region_with(loaded, "if i < n")
    assert "if (i < n)" in loaded.cuda_text(region) and loaded.state(region) == "accepted"


def test_comments_and_withdrawing(port: Path):
    region = region_with(load(port), "if i < n")
    loaded = add_comment(load(port), region, "why not <=?")
    assert loaded.state(region) == "open" and loaded.decisions[region.name].comment == "why not <=?"
    loaded = accept(loaded, region)
    assert loaded.decisions[region.name].comment == "why not <=?"
    loaded = withdraw(loaded, region)
    assert loaded.state(region) == "open" and loaded.decisions[region.name].comment == "why not <=?"
    assert len(json.loads(record_path(port).read_text())["review"]["decisions"]) == 1


def test_a_rejected_rewrite_becomes_a_hole(port: Path):
    loaded = load(port)
    region = region_with(loaded, "if i < n")
    loaded = reject(loaded, region, "wrong guard")
    text = port.read_text()
    ast.parse(text)
    assert 'runtime.hole(1, "PRT963")  # rejected by Ada: wrong guard' in text
    assert "# CUDA: if (i < n) {" in text and "if i < n" not in text
    record = read_record(port)
    assert record is not None
    (hole,) = record.holes
    assert hole.code == "PRT963" and "twice(in[i])" in hole.cuda and hole.span.line == 9
    assert loaded.state(region_with(loaded, "runtime.hole")) == "hole"
    assert [n for n, _ in loaded.holes] == [1]
    assert loaded.decisions[region_with(loaded, "runtime.hole").name].state == "rejected"
    with pytest.raises(PorterError, match="is hole 1"):
        accept(loaded, region_with(loaded, "runtime.hole"))


def test_two_rejections_are_two_holes(port: Path):
    loaded = reject(load(port), region_with(load(port), "if i < n"))
    loaded = reject(loaded, region_with(loaded, "w = "))
    assert [n for n, _ in loaded.holes] == [1, 2]


def test_what_can_be_no_hole_is_noted_as_rejected(port: Path):
    before = port.read_text()
    loaded = reject(load(port), region_with(load(port), "KERNEL ="))
    assert loaded.state(region_with(loaded, "KERNEL =")) == "rejected" and port.read_text() == before


def test_a_rejected_signature_takes_the_function_along(port: Path):
    loaded = reject(load(port), region_with(load(port), "def twice"), "by value?")
    text = port.read_text()
    ast.parse(text)
    assert "# CUDA: const float w = v * 2.0f;" in text and "return v" not in text and "    w = v" not in text
    (hole,) = loaded.record.holes
    assert hole.cuda.startswith("__device__ float twice(float v) {") and hole.cuda.endswith("}")
    assert (hole.span.line, hole.span.end_line) == (2, 5) and "by value?" in hole.reason
    there = region_with(loaded, "runtime.hole")
    assert loaded.state(there) == "hole" and loaded.decisions[there.name].state == "rejected"
    signature = region_with(loaded, "def twice")
    assert loaded.state(signature) == "open" and signature.hole_lines is None, "there is nothing left to take along"
    filled = edit(loaded, there, "    return v * 2.0")
    assert not filled.holes and filled.state(region_with(filled, "v * 2.0")) != "hole"


def test_a_rejected_kernel_signature_leaves_no_line_of_the_kernel(port: Path):
    loaded = reject(load(port), region_with(load(port), "def scale_kernel"))
    assert function(port.read_text(), "scale_kernel").count("runtime.hole") == 1
    assert "lib.ldg" not in port.read_text() and loaded.record.holes[0].span.line == 7
    assert region_with(loaded, "KERNEL =") and function(port.read_text(), "_launch_scale_kernel")


@pytest.mark.parametrize("name", ["_launch_scale_kernel", "launch_config"])
def test_a_rejected_launch_becomes_a_hole(port: Path, name: str):
    loaded = load(port)
    loaded = reject(loaded, region_with(loaded, f"def {name}("), "one block only")
    region = region_with(loaded, f"def {name}(")
    ast.parse(port.read_text())
    assert region.hole == 1 and loaded.state(region) == "hole" and "one block only" in loaded.record.holes[0].reason
    assert loaded.decisions[region.name].state == "rejected"
    with pytest.raises(PorterError, match="is hole 1"):
        accept(loaded, region)
    assert [r.name for r in loaded.regions if r.hole] == [region.name]
    assert reject(loaded, region).record.holes == loaded.record.holes


def function(text: str, name: str) -> str:
    """The lines of one function of a port."""
    node = next(n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == name)
    return ast.get_source_segment(text, node) or ""


def test_a_rejected_edit_gives_the_emitted_lines_back(port: Path):
    before = port.read_text()
    loaded = load(port)
    region = region_with(loaded, "if i < n")
    loaded = edit(loaded, region, loaded.port_text(region).replace("i < n", "i <= n"))
    changed = region_with(loaded, "i <= n")
    assert "person" in changed.authors and loaded.record.emitted_sha256 != ""
    reject(loaded, changed, config=PortConfig())
    assert port.read_text() == before


def test_edits_that_are_not_python_are_refused_and_kept(port: Path):
    before = port.read_text()
    loaded = load(port)
    region = region_with(loaded, "if i < n")
    save_draft(port, region.name, "    if i <")
    with pytest.raises(PorterError, match="not Python"):
        edit(loaded, region, "    if i <")
    assert port.read_text() == before and read_draft(port, region.name) == "    if i <"
    edit(loaded, region, loaded.port_text(region).replace("i < n", "i <= n"))
    assert read_draft(port, region.name) is None


def test_nothing_is_decided_about_a_text_that_is_gone(port: Path):
    loaded = load(port)
    port.write_text(port.read_text() + "# somebody else\n")
    for decide in (accept, reject):
        with pytest.raises(PorterError) as error:
            decide(loaded, region_with(loaded, "if i < n"))
        assert error.value.diagnostics[0].code == "PRT964"
    assert "review" not in json.loads(record_path(port).read_text())


def test_a_missing_source_allows_comments_only(folder: Path, port: Path):
    (folder / "scale.cu").unlink()
    loaded = load(port)
    region = region_with(loaded, "if i < n")
    assert [d.code for d in loaded.faults] == ["PRT961"]
    with pytest.raises(PorterError, match="cannot be read"):
        accept(loaded, region)
    assert add_comment(loaded, region, "where is it?").decisions[region.name].comment == "where is it?"


@pytest.mark.parametrize("damage", ["{", '{"schema": 1}', "review"])
def test_damaged_records_are_shown_and_left_alone(port: Path, damage: str):
    path = record_path(port)
    if damage == "review":
        accept(load(port), load(port).regions[0])
        damage = path.read_text().replace('"accepted"', '"acepted"')
    path.write_text(damage)
    loaded = load(port)
    assert loaded.faults[0].code in ("PRT955", "PRT960") and not loaded.readable and loaded.regions
    with pytest.raises(PorterError):
        accept(loaded, loaded.regions[0])
    assert path.read_text() == damage


def test_check_is_for_ci(port: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["review", str(port), "--check"]) == 1
    assert "scale_kernel/1 is open" in capsys.readouterr().out
    accept_all(port)
    assert main(["review", str(port), "--check"]) == 0
    port.write_text(port.read_text().replace("if i < n", "if i <= n"))
    assert main(["review", str(port), "--check"]) == 1
    assert "is stale" in capsys.readouterr().out
    assert main(["review", "nowhere", "--check"]) == 2


def test_textual_is_imported_by_the_screens_alone(folder: Path):
    code = (
        "import sys, porter.cli, porter.commands.review, porter.review.plain, porter.review.page\n"
        "porter.cli.main(['review', 'out', '--check'])\n"
        "assert not [m for m in sys.modules if m.partition('.')[0] in ('textual', 'torch', 'cutlass', 'clang')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_a_terminal_the_screens_are_refused(folder: Path):
    done = subprocess.run(
        [sys.executable, "-m", "porter.cli", "review", "out"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 2 and "use --plain" in done.stderr


def test_plain_asks_about_each_region(port: Path):
    said: list[str] = []
    answers = iter(["what?", "c a remark", "a", "r no", "n", "q"])
    code = review_plain([port], PortConfig(), lambda question: next(answers), said.append)
    loaded = load(port)
    assert code == 1 and loaded.state(loaded.regions[0]) == "accepted"
    assert loaded.decisions[loaded.regions[0].name].comment == "a remark"
    assert loaded.decisions[loaded.regions[2].name].state == "rejected" and loaded.regions[2].kind == "hole"
    assert any("a comment may follow" in s for s in said) and any("port     1 |" in s for s in said)


def test_plain_edits_and_verifies(port: Path, monkeypatch: pytest.MonkeyPatch):
    """The changed port is verified before the next question; rejecting the edit takes it back, and verifies again."""
    verified: list[str] = []

    async def verify(path: Path, say: Callable[[str], None], config: PortConfig | None) -> tuple[bool, str]:
        verified.append(path.read_text())
        return False, f"numerics FAIL {len(verified)}"

    before = port.read_text()
    monkeypatch.setattr("porter.review.plain.verify", verify)
    monkeypatch.setattr("porter.review.plain.edited_text", lambda text, path: text.replace("i < n", "i <= n"))
    loaded = load(port)
    ahead = loaded.regions.index(region_with(loaded, "if i < n"))
    said: list[str] = []
    answers = iter([*["n"] * ahead, "e", "r not this", "q"])
    assert review_plain([port], PortConfig(), lambda question: next(answers), said.append) == 1
    assert [("i <= n" in text) for text in verified] == [True, False] and port.read_text() == before
    assert said.index("edited") < said.index("verifying ...") < said.index("numerics FAIL 1")
    assert (
        "numerics FAIL 2" in said
        and load(port).decisions[region_with(load(port), "if i < n").name].comment == "not this"
    )


def test_plain_to_the_end_is_complete(port: Path):
    said: list[str] = []
    assert review_plain([port], PortConfig(), lambda question: "a", said.append) == 0
    assert check([load(port)], said.append) == 0


def test_plain_ends_with_its_input(port: Path):
    def ended(question: str) -> str:
        raise EOFError

    assert review_plain([port], PortConfig(), ended, lambda text: None) == 1

    answers = iter(["c"])  # and it ends at the question for the comment

    def ended_later(question: str) -> str:
        for answer in answers:
            return answer
        raise EOFError

    assert review_plain([port], PortConfig(), ended_later, lambda text: None) == 1
    assert not load(port).decisions


def test_a_page_that_cannot_be_written_is_a_message(port: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["review", str(port), "--export", "nowhere/page.html"]) == 2
    err = capsys.readouterr().err
    assert "PRT953" in err and "give --export another path" in " ".join(err.split()) and "-o" not in err


def test_the_exported_page_stands_alone(folder: Path, port: Path):
    with_verdicts(port)
    accept(load(port), region_with(load(port), "def twice"), "<fine>")
    assert main(["review", str(port), "--export", "page.html"]) == 0
    text = (folder / "page.html").read_text()
    assert "http" not in text and "<script" not in text and "<link" not in text
    assert "✗ FAIL" in text and "accepted by Ada" in text and "&lt;fine&gt;" in text
    assert "out[3] is 2.0" in text and 'class="head accepted"' in text
    assert page([load(port)]).count("<h2") == 1
