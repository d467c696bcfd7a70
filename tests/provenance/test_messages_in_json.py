"""Messages in records and reports: what a program needs of them is in keys, and records of earlier releases go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from porter.config import PortConfig, apply_table
from porter.model import Diagnostic, EditedPort, KernelReport, PorterError
from porter.provenance.json import diagnostic_from_json, diagnostic_to_json
from porter.provenance.record import PortRecord
from porter.provenance.store import refuse_edited
from porter.report.console import kernel_from_json, kernel_to_json
from porter.source import Source

MESSAGE = Diagnostic("PRT840", "wrong", notes=("port: out/k.py:44 (hole 2)",), port_line=44, hole=2, key="arch")


def test_every_field_comes_back_from_json() -> None:
    assert diagnostic_from_json(diagnostic_to_json(MESSAGE)) == MESSAGE


def test_a_message_about_no_port_has_none_of_the_keys() -> None:
    assert not {"port_line", "hole", "key"} & diagnostic_to_json(Diagnostic("PRT840", "wrong")).keys()


@pytest.mark.parametrize(
    ("note", "line", "hole"),
    [
        ("port: ported/k.py:44", 44, 0),
        ("port: ported/k.py:44 (hole 2)", 44, 2),
        ("port: a folder: with (hole 1)/k.py:7", 7, 0),
        ("port: ported/k.py", 0, 0),
        ("the port: k.py:44", 0, 0),
        ("launch: n=100:44", 0, 0),
    ],
)
def test_records_of_earlier_releases_have_the_line_in_a_note(note: str, line: int, hole: int) -> None:
    row = {"code": "PRT840", "message": "wrong", "notes": ["first", note]}
    found = diagnostic_from_json(row)
    assert (found.port_line, found.hole) == (line, hole)


def test_the_key_counts_before_the_note() -> None:
    row = diagnostic_to_json(replace(MESSAGE, port_line=3, hole=0))
    assert diagnostic_from_json(row).port_line == 3 and diagnostic_from_json(row).hole == 0


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"arch": ["sm_20"]}, "arch"),
        ({"jobs": -1, "std": "c++20"}, "jobs"),
        ({"std": "`arch`", "arch": ["sm_90a"]}, "std"),  # a value that looks like a key
        ({"jobs": "many"}, "jobs"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_setting_is_found_at_its_line(table: dict[str, object], key: str, tmp_path: Path) -> None:
    text = "[tool.porter]\n" + "".join(f"{name} = 0\n" for name in ["verify", *table])
    with pytest.raises(PorterError) as caught:
        apply_table(PortConfig(), table, tmp_path / "pyproject.toml", text)
    (found,) = caught.value.diagnostics
    assert found.code == "PRT951" and found.key == key
    assert text.splitlines()[found.span.line - 1].startswith(key)


@pytest.mark.parametrize("present", [b"x = 1\n", b"\xff", b""])
def test_a_port_that_is_not_porters_names_itself(present: bytes, tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    port.write_bytes(present)
    with pytest.raises(EditedPort) as caught:
        refuse_edited(port, "y = 2\n", PortRecord("k"))
    assert caught.value.port == port and caught.value.diagnostics[0].code == "PRT954"


def test_a_report_names_the_port_that_was_left_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("")
    report = KernelReport("k", Source.read(source), edited_port="out/k.py")
    assert kernel_from_json(kernel_to_json(report)).edited_port == "out/k.py"
    assert "edited_port" not in kernel_to_json(replace(report, edited_port=""))
