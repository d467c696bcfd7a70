"""`.port.json`: round trip, kept keys, edited ports, crashes between two files, concurrent writers, re-anchoring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from porter.model import Hole, Instance, LineMapEntry, PorterError, Status, Verdict
from porter.model.facts import NumericsFacts
from porter.provenance import store
from porter.provenance.line_map import cuda_span, reanchor
from porter.provenance.record import PortRecord, line_hashes, record_path, sha256_text
from porter.provenance.store import current_line_map, is_edited, read_record, update_record, write_port
from porter.source import Span

TEXT = "import cutlass\n\nx = 1\ny = 2\nz = 3\n"


def record() -> PortRecord:
    return PortRecord(
        kernel="k",
        source="../k.cu",
        source_sha256="ab",
        line_map=(LineMapEntry(3, Span("k.cu", 10, 5, 10, 9)), LineMapEntry(4, Span("k.cu", 11), "pattern:PRT301")),
        instances=(Instance(("__half", "8")), Instance(("float", "4"))),
        arches=("sm_90a",),
        holes=(Hole("PRT401", Span("k.cu", 12, 1, 12, 8), "wmma::fill", "no rule"),),
        patterns=("warp_reduce",),
        verdicts=(Verdict("numerics", Status.PASS, "3 cases", facts=NumericsFacts(3)),),
        options={"std": "c++17"},
        versions={"porter": "0.1.0"},
    )


def code_of(error: pytest.ExceptionInfo[PorterError]) -> str:
    return error.value.diagnostics[0].code


def test_a_record_reads_back_as_it_was_written(tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    assert write_port(port, TEXT, record())
    back = read_record(port)
    assert back is not None
    assert back == replace(record(), emitted_sha256=sha256_text(TEXT), line_hashes=line_hashes(TEXT))
    assert port.read_text() == TEXT


def test_the_line_map_is_one_row_a_line(tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    write_port(port, TEXT, record())
    assert "   [3, 0, 10, 5, 10, 9, 0],\n" in record_path(port).read_text()


def test_unknown_keys_are_kept_by_every_writer(tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    write_port(port, TEXT, record())
    value = json.loads(record_path(port).read_text())
    value["review"] = {"decisions": [1, 2]}
    record_path(port).write_text(json.dumps(value))
    write_port(port, TEXT + "w = 4\n", record())
    update_record(port, lambda r: replace(r, arches=("sm_100a",)))
    after = json.loads(record_path(port).read_text())
    assert after["review"] == {"decisions": [1, 2]}
    assert after["arches"] == ["sm_100a"]


def test_an_edited_port_is_refused_with_a_diff_and_force_writes_it(tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    write_port(port, TEXT, record())
    port.write_text(TEXT.replace("y = 2", "y = 22  # mine"))
    assert is_edited(port)
    with pytest.raises(PorterError) as caught:
        write_port(port, TEXT, record())
    assert code_of(caught) == "PRT954"
    diff = caught.value.diagnostics[0].notes[0].splitlines()
    assert "+y = 22  # mine" in diff and "-y = 2" in diff
    assert "mine" in port.read_text()
    assert write_port(port, TEXT, record(), force=True)
    assert port.read_text() == TEXT and not is_edited(port)


def test_a_file_porter_never_wrote_is_refused(tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    port.write_text("print('precious')\n")
    with pytest.raises(PorterError) as caught:
        write_port(port, TEXT, record())
    assert code_of(caught) == "PRT954"
    assert port.read_text() == "print('precious')\n"


def test_the_port_of_another_kernel_is_refused(tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    write_port(port, TEXT, record())
    with pytest.raises(PorterError) as caught:
        write_port(port, "x\n", replace(record(), kernel="other"))
    assert code_of(caught) == "PRT957" and port.read_text() == TEXT
    assert write_port(port, "x\n", replace(record(), kernel="other"), force=True)


def test_an_unedited_port_is_replaced_and_an_unchanged_one_not_touched(tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    write_port(port, TEXT, record())
    assert write_port(port, TEXT + "w = 4\n", record())
    os.utime(port, ns=(1, 1))
    assert not write_port(port, TEXT + "w = 4\n", record())
    assert port.stat().st_mtime_ns == 1


def test_a_crash_between_the_two_files_does_not_look_like_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = tmp_path / "k.py"
    write_port(port, TEXT, record())
    real = store.write_atomic

    def only_the_record(path: Path, text: str) -> None:
        if path == port:
            raise KeyboardInterrupt
        real(path, text)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(store, "write_atomic", only_the_record)
        write_port(port, "new\n", record())
    assert port.read_text() == TEXT
    assert not is_edited(port)
    assert write_port(port, "newer\n", record())


@pytest.mark.parametrize(
    "text, says",
    [
        ("{", "PRT955"),
        ("[]", "PRT955"),
        ('{"schema": 99}', "PRT955"),
        ('{"schema": 1}', "PRT955"),
        ('{"schema": 1, "kernel": "k", "line_map": {"rows": [[1]]}}', "PRT955"),
        ('{"schema": 1, "kernel": "k", "assumptions": [{"text": "that"}]}', "PRT955"),
    ],
)
def test_a_broken_record_is_refused_and_force_replaces_it(tmp_path: Path, text: str, says: str) -> None:
    port = tmp_path / "k.py"
    write_port(port, TEXT, record())
    record_path(port).write_text(text)
    with pytest.raises(PorterError) as caught:
        write_port(port, TEXT, record())
    assert code_of(caught) == says
    write_port(port, TEXT, record(), force=True)
    assert read_record(port) is not None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_clear_message(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PorterError) as caught:
            write_port(tmp_path / "k.py", TEXT, record())
        assert code_of(caught) == "PRT953"
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk_leaves_the_old_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = tmp_path / "k.py"
    write_port(port, TEXT, record())

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PorterError) as caught:
        write_port(port, "new\n", record())
    assert code_of(caught) == "PRT953" and "no space left" in str(caught.value)
    assert port.read_text() == TEXT
    assert sorted(p.name for p in tmp_path.iterdir()) == [".porter", "k.port.json", "k.py"]


WRITER = """
import sys
from pathlib import Path
from porter.provenance.record import PortRecord
from porter.provenance.store import write_port
port, who = Path(sys.argv[1]), sys.argv[2]
for n in range(20):
    write_port(port, f"# {who} {n}\\n" * 2000, PortRecord(kernel="k", case=f"{who}{n}"))
"""


def test_two_writers_never_mix(tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    runs = [subprocess.Popen([sys.executable, "-c", WRITER, str(port), who]) for who in ("a", "b")]
    assert [r.wait(timeout=120) for r in runs] == [0, 0]
    back = read_record(port)
    assert back is not None
    assert sha256_text(port.read_text()) == back.emitted_sha256
    assert port.read_text().split()[1] == back.case[0]


def test_the_map_follows_an_edit() -> None:
    old = ["a", "b", "c", "d"]
    new = ["new", "a", "B", "c", "d", "tail"]
    entries = tuple(LineMapEntry(n + 1, Span("k.cu", 10 * (n + 1))) for n in range(4))
    moved = reanchor(entries, line_hashes("\n".join(old)), line_hashes("\n".join(new)))
    assert [(e.line, e.span.line, e.author) for e in moved] == [
        (2, 10, "translator"),
        (3, 20, "person"),
        (4, 30, "translator"),
        (5, 40, "translator"),
        (6, 40, "person"),
    ]
    assert cuda_span(moved, 1).line == 0
    assert cuda_span(moved, 4).line == 30


def test_the_map_of_a_port_on_disk(tmp_path: Path) -> None:
    port = tmp_path / "k.py"
    write_port(port, TEXT, record())
    port.write_text("# note\n" + TEXT)
    assert [e.line for e in current_line_map(port)] == [4, 5]
