"""Ports of earlier library versions: every name that they import is there still, and means the same."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

from porter.corpus.library import RENAMED, RENAMED_METHODS, VERSION, renamed_in
from porter.provenance.record import tool_versions
from porter.verify.checks.honesty.vocabulary import may_name

PORTS = sorted((Path(__file__).parent / "old_ports").glob("*.py"))
CORPUS = Path(__file__).parents[2] / "porter" / "corpus"


def old_names():
    return [(module, old, new) for module, names in RENAMED.items() for old, new in names.items()]


@pytest.mark.parametrize("port", PORTS, ids=lambda p: p.stem)
def test_ports_of_the_release_before_import(port):
    pytest.importorskip("cutlass")
    spec = importlib.util.spec_from_file_location(f"old_{port.stem}", port)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lib = importlib.import_module("porter.corpus.lib")
    named = [n for n in ast.walk(ast.parse(port.read_text())) if isinstance(n, ast.Attribute)]
    missing = [n.attr for n in named if getattr(n.value, "id", "") == "lib" and not hasattr(lib, n.attr)]
    assert not missing and module.KERNEL


@pytest.mark.parametrize("port", [p for p in PORTS if p.stem in ("edited", "rms_norm")], ids=lambda p: p.stem)
def test_ports_of_the_release_before_compile(port):
    pytest.importorskip("cutlass")
    from porter.verify.compile.worker import CompileRequest, compile_port

    constants = {"scalar_t": "bf16", "VEC": 8} if port.stem == "rms_norm" else {}
    result = compile_port(port, [CompileRequest(constants, "sm_90a")])[0]
    assert result.ok, result.error
    if port.stem == "edited":
        assert "prefetch.L2" in result.ptx and "ld.relaxed.gpu" in result.ptx and "L1::no_allocate" in result.ptx


@pytest.mark.parametrize(("module", "old", "new"), old_names())
def test_an_old_name_is_the_new_thing(module, old, new):
    if module.startswith("porter.corpus.lib"):
        pytest.importorskip("cutlass")
    home = importlib.import_module(module)
    assert getattr(home, old) is getattr(home, new)
    if module.startswith("porter.corpus.lib"):
        assert getattr(importlib.import_module("porter.corpus.lib"), old) is getattr(home, new)
        assert may_name("porter.corpus.lib", old) and may_name("porter.corpus.lib", new)


@pytest.mark.parametrize("path", list(RENAMED_METHODS))
def test_an_old_method_is_the_new_one(path):
    pytest.importorskip("cutlass")
    module, _, name = path.rpartition(".")
    owner = getattr(importlib.import_module(module), name)
    for old, new in RENAMED_METHODS[path].items():
        assert getattr(owner, old) is getattr(owner, new)


def test_nothing_of_the_corpus_says_an_old_name():
    old = set(renamed_in("porter.corpus.lib"))
    for file in sorted(CORPUS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            assert not (isinstance(node, ast.Attribute) and ast.unparse(node.value) == "lib" and node.attr in old), file


def test_a_record_says_the_version_of_the_library():
    assert tool_versions()["library"] == str(VERSION)
