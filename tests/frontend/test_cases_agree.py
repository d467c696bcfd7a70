"""Cases derived from the source against cases written by hand: roles, dtypes and launches agree, or are marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.case.expressions import ExprError, evaluate
from porter.case.instances import instance_values
from porter.case.reader import load_case
from porter.frontend.case.draft import derive_case
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.source import Source
from tests.real.port_public import CASES, DEFINE, INCLUDE, sources_folder

REFERENCE = Path(__file__).parents[2] / "reference_kernels"
# one of each launcher's kind is read at every change, all of them by -m slow
OFTEN = ("rms_norm", "silu_and_mul", "softmax", "moe_sum", "topk_softmax", "permute_rows", "per_token_group_fp8_quant")
FEWER_BLOCKS = {  # a grid-stride loop, which the case runs with few blocks so that every block takes several turns
    "gelu_tanh_and_mul", "permute_rows", "static_int8_quant", "moe_dispatch",
}  # fmt: skip


def every():
    for path in sorted(REFERENCE.rglob("*.case.toml")):
        name = path.name.removesuffix(".case.toml")
        yield pytest.param(path, id=name, marks=() if name in OFTEN else pytest.mark.slow)


def derived(path: Path, source: Path, options: ParseOptions):
    written = load_case(path)
    unit = parse_source(Source(source, source.read_text(errors="replace")), options)
    info = unit.kernel(written.kernel)
    assert info is not None
    return written, derive_case(unit, info), info


def disagreements(written, case, info, *, launches=True):
    """What differs and is not marked as a guess."""
    found = []
    for b in case.buffers:
        by_hand = written.buffer(b.name)
        # whether what an output held counts, and whether it is compared, the author decides
        roles = {b.role, "scratch"} if b.role in ("out", "inout") else {b.role}
        if by_hand.role not in roles and not b.role_is_guess:
            found.append(f"{b.name} is {b.role}, by hand {by_hand.role}")
        if b.dtype is not None and b.dtype != by_hand.dtype and b.shape_from != "a guess":
            found.append(f"{b.name} holds {b.dtype}, by hand {by_hand.dtype}")
    return found + (list(launch_differences(written, case, info)) if launches else [])


def launch_differences(written, case, info):
    """Grid and block at the points of the case by hand, where its sizes say those of the derived one."""
    own = {s.name for s in case.sizes}
    for instance in written.instances:
        values = instance_values(info, instance.instance)
        for point in written.instance_points(instance, values, 6):
            names = {**values, **point.names(values)}
            sizes = {n: int(point.scalars[n]) for n in own if n in point.scalars}
            for b in case.buffers:
                shape = point.shapes.get(b.name, ())
                if b.shape is not None and len(b.shape) == len(shape):
                    sizes |= {e: n for e, n in zip(b.shape, shape, strict=True) if e in own and e not in sizes}
            launch = written.launch_at(point, values)
            for e, n in zip(case.launch.grid or (), launch.grid, strict=False):
                sizes.setdefault(e, n)
            for key, texts, dims in (
                ("grid", case.launch.grid, launch.grid), ("block", case.launch.block, launch.block)
            ):  # fmt: skip
                for text, wanted in zip(texts or (), dims, strict=False):
                    # a choice by instance says nothing of instances that the derived case has not
                    if " if " in text and instance.args not in [i.args for i in case.instances]:
                        continue
                    if key == "grid" and written.path.name.removesuffix(".case.toml") in FEWER_BLOCKS:
                        continue
                    try:
                        value = evaluate(text, {**names, **sizes})
                    except ExprError:
                        continue  # a size that nothing of the case by hand tells
                    if value != wanted:
                        yield f"{key}: {text} is {value} at {point}, by hand {wanted}"


@pytest.mark.parametrize("path", every())
def test_derived_cases_agree_with_those_of_the_reference_kernels(path):
    written, case, info = derived(path, load_case(path).source_path, ParseOptions(include_dirs=(str(REFERENCE),)))
    assert not disagreements(written, case, info)
    assert case.launch.grid and case.launch.block and not any(s.free and s.name == "value" for s in case.sizes)


@pytest.mark.real
@pytest.mark.parametrize("path", sorted(CASES.glob("*.case.toml")), ids=lambda p: p.name.removesuffix(".case.toml"))
def test_derived_cases_agree_with_those_of_public_kernels(path):
    folder = sources_folder()
    if folder is None:
        pytest.skip("no folder of public sources is named")
    named = load_case(path).source
    if not (folder / named).is_file():
        pytest.skip(f"there is no {named}")
    repository = named.split("/")[0]
    options = ParseOptions(
        include_dirs=tuple(str(folder / repository / x) for x in INCLUDE.get(repository, ())),
        defines=DEFINE.get(repository, ()),
    )
    written, case, info = derived(path, folder / named, options)
    assert not disagreements(written, case, info, launches=False)
