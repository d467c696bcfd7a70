"""Every instruction that a docstring of porter.corpus.lib names is in the PTX of a call of that function."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

from porter.corpus import lib
from porter.corpus.runtime.specialisation import compiled
from tests.corpus.lib.library_calls import CALLS, Call

FOLDER = Path(lib.__file__).parent
INSTRUCTION = re.compile(r"`(%?[a-z][a-z0-9_]*(?:\.[a-zA-Z0-9:_]+)+|selp|trap|%[a-z_0-9]+)`")
# What norms and softmax are made of is pinned where it is used: test_norm_ptx, test_library_ptx.
ELSEWHERE = {
    "rows": {"row_slice", "load", "store", "prefetch", "store_words", "reduce"},
    "norms": {"inverse_rms"},
    "exp_sums": {"join_exp_sums"},
    "cluster": {"inbox", "send", "received"},
    "chunks": {"rows_and_column"},
    "packed": {"prefetch_bytes", "round_each"},
    "memory": {"shared_address"},
}
NOT_PTX = ("choices.", "porter.", "cute.")
BLACKWELL = ("ue8m0", "e2m1")


def promises():
    """(module, function, instructions named in its docstring)."""
    found = []
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            named = [w for w in INSTRUCTION.findall(ast.get_docstring(node) or "") if not w.startswith(NOT_PTX)]
            if named and node.name not in ELSEWHERE.get(path.stem, ()):
                found.append((path.stem, node.name, tuple(dict.fromkeys(named))))
    return found


PROMISES = promises()


def test_every_function_that_names_instructions_is_called_here():
    assert {name for _, name, _ in PROMISES} == set(CALLS)


def test_every_public_function_says_what_it_does():
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.stem}.{node.name}"


@pytest.mark.parametrize(("module", "name", "named"), PROMISES, ids=lambda v: v if isinstance(v, str) else None)
def test_instructions_are_in_the_ptx(module, name, named):
    arch = "sm_100a" if any(word in n for n in named for word in BLACKWELL) else "sm_90a"
    body = compiled(Call(name), arch, "ptx").ptx.partition("\n{")[2]
    lines = [line.strip() for line in body.splitlines() if not line.strip().startswith(("//", ".file", ".loc"))]
    text = "\n".join(lines)
    for instruction in named:
        first, *rest = instruction.split(".")
        parts = "".join(rf"(?:\.[\w:]+)*?\.{re.escape(part)}(?![\w:])" for part in rest)  # others may stand between
        pattern = rf"(?<![\w.]){re.escape(first)}{parts}"
        assert re.search(pattern, text), f"{instruction} is not in the PTX of {name}"
