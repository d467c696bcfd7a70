"""Why a region is as it is: the steps from CUDA to machine code, with code that was really compiled."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from porter.case.instances import instance_values
from porter.config import PortConfig
from porter.review.port import why as whys
from porter.review.port.machine_code import PortLine, PortListing, instructions, place_in, relabelled
from porter.review.port.regions import Region
from porter.review.port.reviewed_port import ReviewedPort, load
from porter.review.port.why import why
from porter.verify.compile import nvdisasm
from porter.verify.compile.nvdisasm import MISSING, disassemble, find_nvdisasm, read_listing
from porter.verify.compile.ptxas import cubin_of, find_ptxas
from tests.emit.test_ports import port as ported

needs_dsl = pytest.mark.skipif(not find_spec("cutlass"), reason="CuTeDSL is missing")
needs_nvdisasm = pytest.mark.skipif(find_nvdisasm() is None, reason=MISSING)
needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas is installed")

PORT = PortListing(
    "port.py",
    ["@cute.kernel", "def k(x):", "    i = lib.c_div(a, 4)", "    v = x[i]", "    s = lib.c_mod(a, 4)", "KERNEL = k"],
    range(1, 6),
)


def library_line(name: str) -> tuple[str, int]:
    """File and first line of the body of a function of the corpus library."""
    from porter.corpus.lib import integers

    path = Path(integers.__file__)
    rows = path.read_text().splitlines()
    return str(path), next(n for n, row in enumerate(rows, 1) if row.startswith(f"def {name}(")) + 1


@pytest.fixture
def ptx() -> str:
    pytest.importorskip("cutlass")  # the library's package imports it
    path, helper = library_line("_rem_s")
    return f"""
.entry k()
{{
\t.loc\t1 6 0
\tld.param.b64 \t%rd1, [p];
\t.loc\t1 4 8
\tld.global.b32 \t%r1, [%rd1];
\t.loc\t2 {helper} 4
\trem.s32 \t%r2, %r1, 4;
\t.loc\t1 6 0
\tcvt.s64.s32 \t%rd2, %r2;
$L__BB0_1:
\tret;
}}
\t.file\t1 "/elsewhere/port.py"
\t.file\t2 "{path}"
"""


def test_lines_are_named_or_found_by_the_call(ptx: str):
    """The launch's line says nothing: what has it is unknown, or where the line before was. A helper is found by its
    caller."""
    assert [(str(at), text.split()[0]) for at, text in instructions(ptx, PORT)] == [
        ("4", "ld.global.b32"),
        ("~5", "rem.s32"),  # _rem_s is reached by c_mod, which line 5 calls
        ("~4", "cvt.s64.s32"),
        ("~4", "ret;"),
    ]


def test_an_inlined_call_says_where_it_stands(ptx: str):
    where = ", function_name $L__info_string0, inlined_at 1 3 9"
    told = [row + where * (".loc\t2" in row) for row in ptx.splitlines()]
    assert ("3", "rem.s32") in [(str(at), text.split()[0]) for at, text in instructions("\n".join(told), PORT)]


def test_relabelled_ptx_is_the_same_code(ptx: str):
    made = relabelled(ptx, PORT)
    code = [row for row in ptx.rstrip().splitlines() if ".loc" not in row]
    assert [row for row in made.splitlines() if ".loc" not in row][:-1] == code
    locs = [tuple(map(int, row.split()[1:])) for row in made.splitlines() if ".loc" in row]
    places = [place_in("/x/port.py", line, PORT) for n, line, _ in locs if n == 3]
    assert places == [PortLine(4, True), PortLine(5, False), PortLine(4, False)]
    assert made.splitlines()[-1] == '\t.file\t3 "port.py"'
    assert place_in("/x/other.py", 4, PORT) is None and place_in("/x/port.py", 6, PORT) is None


def test_a_listing_is_read_by_kernel():
    listing = """
\t.section\t.text.first,"ax",@progbits
\t//## File "/x/port.py", line 4
        /*0000*/                   LDG.E R2, [R2.64] ;
\t.section\t.text.second,"ax",@progbits
        /*0000*/               @P0 EXIT ;
"""
    first, second = read_listing(listing)
    assert (first.text, first.line) == ("LDG.E R2, [R2.64] ;", 4) and (second.text, second.line) == ("@P0 EXIT ;", 0)
    assert read_listing(listing, "second") == (second,)


def test_without_nvdisasm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(nvdisasm, "find_nvdisasm", lambda: None)
    with pytest.raises(RuntimeError, match="pip install 'nvidia-cuda-nvdisasm"):
        disassemble(b"\x7fELF")


@needs_nvdisasm
def test_what_is_no_cubin_is_said():
    with pytest.raises(RuntimeError, match="nvdisasm failed"):
        disassemble(b"no cubin")


def parts(port: Path, text: str) -> dict[str, str]:
    """The parts of why about the region with a text, by their first word."""
    loaded: ReviewedPort = load(port)
    region: Region = next(r for r in loaded.regions if text in loaded.port_text(r))
    found = [part.partition("\n") for part in why(loaded, region, PortConfig())]
    return {head: body for head, _, body in found}


@needs_dsl
def test_every_step_is_there(port: Path):
    found = parts(port, "lib.ldg(")
    names = [re.sub(r" \(.*", "", head) for head in found]
    assert names == ["CUDA", "IR", "rewrite", "IR after the rewrites", "CuTeDSL", "PTX", "SASS"]
    assert "twice(in[i])" in found["CUDA"] and "twice(in[i])" in found["IR (first instance)"]
    assert "pattern readonly_load" in found["rewrite"] and "readonly_load assumes" in found["rewrite"]
    assert found["IR after the rewrites"] == "the same"
    loaded = load(port)
    line = next(n for n, row in enumerate(loaded.port_lines, 1) if "lib.ldg(" in row)
    (ptx,) = (body for head, body in found.items() if head.startswith("PTX"))
    assert re.search(rf"~?{line} ld\.global\.nc", ptx) and re.search(rf" {line} st\.global", ptx)


@needs_dsl
@needs_nvdisasm
def test_machine_code_has_the_lines_of_the_port(port: Path):
    found = parts(port, "lib.ldg(")
    line = next(n for n, row in enumerate(load(port).port_lines, 1) if "lib.ldg(" in row)
    ((head, sass),) = ((head, body) for head, body in found.items() if head.startswith("SASS"))
    assert re.search(r"\(\d+ instructions in all", head)
    assert re.search(rf"~?{line} (@!?P\d )?LDG\.E\.CONSTANT", sass) or "library calls are placed where" in head
    assert re.search(rf" {line} (@!?P\d )?STG\.E", sass) and "FMUL" in sass


@needs_dsl
@needs_nvdisasm
def test_without_ptxas_the_lines_are_those_that_the_compiler_names(port: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(whys, "cubin_of", lambda ptx, arch: None)
    ((head, sass),) = ((h, b) for h, b in parts(port, "lib.ldg(").items() if h.startswith("SASS"))
    assert "with ptxas installed" in head and "STG" in sass and "~" not in sass


@needs_dsl
@needs_ptxas
@needs_nvdisasm
def test_instructions_of_library_calls_are_at_the_calls(tmp_path: Path):
    """rms_norm: wide loads at `lib.copy`, shuffles at `lib.shfl_xor`, barriers where they stand, in PTX and in SASS."""
    from porter.verify.compile.worker import CompileRequest, compile_port

    module, info, instances, _ = ported("norm/rms_norm")
    file = tmp_path / "rms_norm.py"
    file.write_text(module.text)
    (made,) = compile_port(file, [CompileRequest(instance_values(info, instances[0]), "sm_90a")])
    assert made.ok, made.error
    rows = module.text.splitlines()
    device = [e.line for e in module.line_map if e.line < rows.index("@cute.jit", rows.index("@cute.kernel")) + 1]
    port = PortListing(file.name, rows, frozenset(device))
    by_line: dict[str, set[str]] = {}
    for at, text in instructions(made.ptx, port):
        by_line.setdefault(rows[at.line - 1].strip(), set()).add(text.split()[0])
    shown = {row: " ".join(sorted(found)) for row, found in by_line.items()}
    copies = [row for row in shown if row.startswith("lib.copy(x") or row.startswith("lib.copy(w")]
    assert copies and all("ld.global.nc.v4" in shown[row] for row in copies)
    assert any("st.global.v4" in found for row, found in shown.items() if row.startswith("lib.copy(y_vec"))
    assert any("shfl.sync" in found for row, found in shown.items() if "lib.shfl_xor(" in row)
    cubin = cubin_of(relabelled(made.ptx, port), "sm_90a")
    assert cubin is not None
    placed: dict[str, set[str]] = {}
    for code in disassemble(cubin, made.entry):
        at = place_in(code.file, code.line, port)
        if at is not None:
            placed.setdefault(rows[at.line - 1].strip(), set()).add(code.text)
    for sign, row in (("LDG.E.128", "lib.copy("), ("STG.E.128", "lib.copy(y_vec"), ("SHFL.BFLY", "lib.shfl_xor(")):
        where = [text for text, found in placed.items() if any(sign in code for code in found)]
        assert where and all(row in text for text in where), (sign, where)


@needs_dsl
def test_plain_asks_why_too(port: Path):
    from porter.review.plain import review_plain

    loaded = load(port)
    before = next(n for n, r in enumerate(loaded.regions) if "lib.ldg(" in loaded.port_text(r))
    said: list[str] = []
    answers = iter([*["n"] * before, "y", "q"])
    assert review_plain([port], PortConfig(), lambda question: next(answers), said.append) == 1
    assert any(s.startswith("PTX") and "ld.global.nc" in s for s in said) and any(s.startswith("SASS") for s in said)
