"""What ports of the reference kernels look like and compile to: no holes, wide accesses kept, standalone, readable."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from porter.case.instances import instance_values
from porter.case.reader import load_case
from porter.emit.module import emit_module
from porter.emit.plan import PlanOptions, make_plan
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.pipeline.stages import lower
from porter.source import Source

ROOT = Path(__file__).parents[2] / "reference_kernels"
ALL = sorted(str(p.relative_to(ROOT).with_suffix("")) for p in ROOT.glob("*/*.cu"))


def lowered(name):
    """(source, case, kernel's info, instances, their kernels as the front end gives them) of a reference kernel."""
    path = ROOT / f"{name}.cu"
    source = Source.read(path)
    case = load_case(path.with_suffix(".case.toml"))
    unit = parse_source(source, ParseOptions())
    info = next(k for k in unit.kernels if k.name == case.kernel)
    instances = tuple(i.instance for i in case.instances)
    return source, case, info, instances, list(lower(unit, info, instances, case))


def port(name, *, standalone=False):
    source, case, info, instances, kernels = lowered(name)
    options = PlanOptions(standalone, source, instances)
    return emit_module(make_plan(kernels, info, case, options)), info, instances, source


@pytest.mark.parametrize("name", ALL)
def test_reference_kernels_have_no_holes_and_keep_their_parameters(name):
    module, info, _, source = port(name)
    assert not module.holes
    tree = ast.parse(module.text)
    kernel = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == info.name)
    arguments = [a.arg for a in kernel.args.args]
    assert arguments == [p.name for p in info.params] + [t.name for t in info.template_params]
    assert "SPDX-License-Identifier" in module.text.splitlines()[0]
    assert max(map(len, module.text.splitlines())) < 400
    assert all(e.span.line <= len(source.lines) for e in module.line_map)


@pytest.mark.parametrize("name", ["norm/rms_norm", "activation/silu_and_mul", "norm/qk_norm"])
def test_wide_accesses_registers_and_local_memory_are_kept(name, tmp_path):
    pytest.importorskip("cutlass")
    from porter.model import PorterError
    from porter.verify.checks.resources import FREE_REGISTERS
    from porter.verify.compile.worker import CompileRequest, compile_port
    from porter.verify.original.build import build_original
    from porter.verify.original.nvrtc import require_nvrtc

    try:
        require_nvrtc()
    except PorterError as error:
        pytest.skip(str(error))
    module, info, instances, source = port(name)
    file = tmp_path / "port.py"
    file.write_text(module.text)
    originals = build_original(source, ParseOptions(), info.qualified_name, instances, want=("ptx", "cubin"))
    requests = [CompileRequest(instance_values(info, i), "sm_90a") for i in instances]
    for original, made in zip(originals, compile_port(file, requests), strict=True):
        assert made.ok, made.error
        text = original_entry(original.ptx, original.entry)
        for access in (r"ld\.global(?:\.nc)?\.v4\.[bfu]32", r"st\.global\.v4\.[bfu]32"):
            wide = len(re.findall(access, text))
            assert len(re.findall(access, made.ptx)) >= wide, (original.instance, access)
            assert (len(re.findall(access, made.ptx)) > 0) == (wide > 0)
        assert made.local_bytes == 0
        assert not re.search(r"\b(ld|st)\.local|__local_depot", made.ptx)
        allowed = max(FREE_REGISTERS, 1.25 * original.registers)
        assert made.registers <= allowed, (original.instance, made.registers, original.registers)


def original_entry(ptx, entry):
    start = ptx.index(f".entry {entry}(")
    end = ptx.find(".entry ", start + 10)
    return ptx[start : end if end > 0 else len(ptx)]


@pytest.mark.parametrize("name", ["norm/rms_norm", "moe/topk_softmax", "quant/per_tensor_fp8_quant"])
def test_standalone_ports_import_nothing_of_the_library(name):
    module, *_ = port(name, standalone=True)
    tree = ast.parse(module.text)
    modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert "porter.corpus" in modules
    assert not re.search(r"\blib\.", module.text)
    imported = [
        a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "porter.corpus" for a in n.names
    ]
    assert imported == ["runtime"]
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    defined |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id.startswith("lib_")}
    assert used <= defined, used - defined


def test_every_library_name_that_the_translator_writes_exists():
    from porter.emit.standalone import library
    from porter.patterns.tables.intrinsics import ROWS

    known, _ = library()
    texts = [r.emit for r in ROWS]
    for path in [*(ROOT.parent / "porter" / "emit").rglob("*.py"), *(ROOT.parent / "porter" / "patterns").glob("*.py")]:
        texts.append(path.read_text())
    used = {n for t in texts for n in re.findall(r"\blib\.(\w+)\(", t)}
    assert used <= set(known), used - set(known)
