"""The roles of pointers as the body shows them agree with what the cases of the reference kernels say."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.case.reader import load_case
from porter.frontend.instances.choice import specialise
from porter.frontend.lower.kernel import lower_kernel
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import Instance
from porter.patterns.roles import pointer_roles
from porter.source import Source

ROOT = Path(__file__).parents[2] / "reference_kernels"
# what a case says beyond the body: scratch is not compared, an output may keep what was there, and what is read (`+=`)
# may be what this launch has written
CONTRACT = {("inout", "scratch"), ("out", "inout"), ("inout", "out")}


@pytest.mark.parametrize("path", sorted(ROOT.glob("*/*.cu")), ids=lambda p: p.stem)
def test_roles_agree_with_the_case(path):
    source = Source.read(path)
    unit = parse_source(source, ParseOptions())
    case = load_case(path.with_suffix(".case.toml"))
    info = next(k for k in unit.kernels if k.name == case.kernel)
    instance = case.instances[0].instance if case.instances else Instance()
    whole, cursors = specialise(source, ParseOptions(), [(info, instance)])
    roles = pointer_roles(lower_kernel(whole, cursors[info.qualified_name, instance], info, instance))
    wrong = {b.name: (roles.get(b.name), b.role) for b in case.buffers if roles.get(b.name) != b.role}
    assert set(wrong.values()) <= CONTRACT, wrong
