"""Characters at which some count a line more, and those that a terminal would obey."""

from __future__ import annotations

from pathlib import Path

from porter.model import LineMapEntry
from porter.provenance.record import PortRecord, line_hashes
from porter.provenance.store import write_port
from porter.review.page import page
from porter.review.plain import region_text
from porter.review.port.reviewed_port import ReviewedPort, load
from porter.review.screens.code_pane import highlighted
from porter.source import Source, Span

ODD = "// a \x0c b \u2028 c \x85\n"
CUDA = f"{ODD}__global__ void k(int* out) {{\n  out[0] = 1; // \x1b[2J \u202e x\n}}\n"
PORT = f"# {ODD}@cute.kernel\ndef k(out):\n    out[0] = 1\n"


def reviewed(folder: Path) -> ReviewedPort:
    """A port whose source has such characters."""
    (folder / "k.cu").write_text(CUDA)
    line_map = tuple(LineMapEntry(n, Span("k.cu", n - 1, 1)) for n in (3, 4))
    write_port(folder / "k.py", PORT, PortRecord("k", "k.cu", Source(Path("k.cu"), CUDA).sha256, line_map=line_map))
    return load(folder / "k.py")


def test_lines_are_those_of_clang_and_of_pythons_parser(tmp_path: Path):
    source = Source(Path("k.cu"), CUDA)
    assert len(source.lines) == 4 and source.excerpt(Span("k.cu", 3, 3, 3, 9)) == "out[0]"
    assert len(line_hashes(PORT)) == 4
    found = reviewed(tmp_path)
    body = next(r for r in found.regions if "out[0]" in found.port_text(r))
    assert found.cuda_text(body).startswith("  out[0] = 1;") and found.port_text(body) == "    out[0] = 1"


def test_a_pane_shows_what_a_terminal_would_obey():
    rows = ["".join(segment.text for segment in row) for row in highlighted(CUDA, "cuda")]
    assert rows == ["// a ␌ b � c �", "__global__ void k(int* out) {", "  out[0] = 1; // ␛[2J � x", "}"]
    assert len({segment.style for segment in highlighted(CUDA, "cuda")[2]}) > 1  # in colours all the same


def test_neither_do_plain_text_and_the_page_hold_such_characters(tmp_path: Path):
    found = reviewed(tmp_path)
    for text in (page([found]), *(region_text(found, region) for region in found.regions)):
        assert not {"\x0c", "\x1b", "\x85", "\u2028", "\u202e"} & set(text)
    assert "␛[2J � x" in page([found])
