"""Patterns and what they take for granted: in the record, in the review, on its page, with `--plain`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from porter.model import patterns_of
from porter.provenance.store import read_record, update_record
from porter.review.descriptions import describe_assumptions, describe_author, patterns_in
from porter.review.page import page
from porter.review.plain import explained, region_text
from porter.review.port.regions import Region, regions_of
from porter.review.port.reviewed_port import ReviewedPort, load
from tests.review.conftest import with_verdicts

PROMISE = "that nobody writes the memory of a const __restrict__ parameter while the kernel runs: by __restrict__"


def loading(port: Path) -> tuple[ReviewedPort, Region]:
    """The port, and its region with the read-only load."""
    loaded = load(port)
    return loaded, next(r for r in loaded.regions if "lib.ldg(" in loaded.port_text(r))


def test_the_record_names_patterns_and_assumptions(port: Path):
    record = read_record(port)
    assert record is not None and record.patterns == ("readonly_load",)
    (line,) = [e for e in record.line_map if "readonly_load" in patterns_of(e.author)]
    assert "lib.ldg(" in port.read_text().splitlines()[line.line - 1] and line.span.line == 10
    (assumption,) = record.assumptions
    assert (assumption.pattern, assumption.basis, assumption.check) == ("readonly_load", "source", "numerics")


def test_a_region_has_pattern_lines_assumption_and_answer(port: Path):
    with_verdicts(port)
    loaded, region = loading(port)
    line = next(n for n in range(region.first, region.last + 1) if "lib.ldg(" in loaded.port_lines[n - 1])
    assert patterns_in(loaded, region) == {"readonly_load": (line,)}
    assert describe_author(loaded, region) == f"by translator; pattern readonly_load ({line})"
    assert describe_assumptions(loaded, region) == [f"readonly_load assumes (promised, numerics FAIL) {PROMISE}"]
    others = [r for r in loaded.regions if r != region]
    assert not any(describe_assumptions(loaded, r) or patterns_in(loaded, r) for r in others)


def test_an_answer_about_another_text_backs_nothing(port: Path):
    with_verdicts(port)
    port.write_text(port.read_text() + "# a person's note\n")
    loaded, region = loading(port)
    assert describe_assumptions(loaded, region) == [f"readonly_load assumes (promised, numerics not run) {PROMISE}"]


def test_the_page_and_plain_show_them(port: Path):
    with_verdicts(port)
    loaded, region = loading(port)
    row = f"readonly_load assumes (promised, numerics FAIL) {PROMISE}"
    assert row in page([loaded]) and page([loaded]).count("readonly_load assumes") == 1
    assert row in region_text(loaded, region) and "pattern readonly_load" in region_text(loaded, region)


def test_a_record_without_assumptions_is_completed_from_the_catalogue(port: Path):
    update_record(port, lambda r: replace(r, assumptions=()))
    loaded, region = loading(port)
    assert describe_assumptions(loaded, region) == [f"readonly_load assumes (promised, numerics not run) {PROMISE}"]


def test_a_record_of_an_earlier_version_shows_no_pattern(port: Path):
    def earlier(record):
        line_map = tuple(replace(e, author="translator") for e in record.line_map)
        return replace(record, patterns=(), assumptions=(), line_map=line_map)

    update_record(port, earlier)
    loaded, region = loading(port)
    assert describe_author(loaded, region) == "by translator" and describe_assumptions(loaded, region) == []


def test_patterns_do_not_divide_regions(port: Path):
    loaded = load(port)
    plain = tuple(replace(e, author="translator") for e in loaded.line_map)
    with_patterns, without = regions_of(loaded.text, loaded.line_map), regions_of(loaded.text, plain)
    assert [(r.name, r.first, r.last) for r in with_patterns] == [(r.name, r.first, r.last) for r in without]


def test_what_is_proved_comes_last(port: Path):
    def more(record):
        (known,) = record.assumptions
        proved = replace(known, basis="proved", how="porter looked", check="", text="that it is so")
        return replace(record, assumptions=(proved, known))

    update_record(port, more)
    loaded, region = loading(port)
    rows = describe_assumptions(loaded, region)
    assert rows[1] == "readonly_load assumes (proved) that it is so: porter looked" and "promised" in rows[0]


def test_explain_has_the_pattern(port: Path):
    loaded, region = loading(port)
    text = explained(loaded, region)
    assert "# pattern readonly_load" in text and "const float* __restrict__ x" in text
    assert "- assumes that nobody writes" in text and "`porter patterns readonly_load`" in text
    other = next(r for r in loaded.regions if r.kind == "header")
    assert explained(loaded, other) == "this region has no diagnostic code and no pattern"
