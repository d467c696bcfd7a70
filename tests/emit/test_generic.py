"""Merging instances: specialising the generic body gives back each instance; parameters are found for what differs."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest

from porter import ir
from porter.emit.generic import ConstVariants, HelperCall, Params, Variants
from porter.emit.merge import merge, specialise
from porter.emit.plan import PlanOptions, make_plan
from tests.emit.test_ports import lowered

TEMPLATES = [
    "norm/rms_norm",
    "norm/qk_norm",
    "norm/layer_norm",
    "moe/topk_softmax",
    "moe/moe_sum",
    "quant/per_token_group_fp8_quant",
    "rotary/rotary_embedding",
    "softmax/softmax",
    "embedding/embedding",
]


def plain(node):
    """IR without what merging does not keep: identity casts, constexpr ifs, which function a call names."""
    if isinstance(node, tuple):
        out = []
        for n in node:
            if isinstance(n, ir.If) and n.is_constexpr:
                out.extend(plain(n.then if n.taken else n.orelse))
            else:
                out.append(plain(n))
        return tuple(out)
    if isinstance(node, ir.Cast) and node.x.type == node.type:
        return plain(node.x)
    if isinstance(node, HelperCall | ir.Call):
        return ("call", tuple(plain(a) for a in node.args))
    if isinstance(node, ir.Node):
        changes = {f.name: plain(getattr(node, f.name)) for f in fields(node) if f.compare}
        return (type(node).__name__, *changes.items())
    return node


def base_names(body):
    """Locals without the numbers that make them different: arms may need names of their own."""

    def one(n):
        return replace(n, name=re.sub(r"(_\d+)+$", "", n.name)) if isinstance(n, ir.Var | ir.Decl) else n

    return ir.rewrite(body, one)


@pytest.mark.parametrize("name", TEMPLATES)
def test_specialising_the_merged_body_gives_back_every_instance(name):
    source, case, info, instances, kernels = lowered(name)
    plan = make_plan(kernels, info, case, PlanOptions(source=source, instances=instances))
    for i, concrete in enumerate(plan.concrete):
        found, wanted = (plain(base_names(b)) for b in (specialise(plan.body, i), concrete.body))
        assert found == wanted, f"instance {instances[i]}"


F, H, B = ir.F32, ir.F16, ir.BF16
PARAMS = Params(("T", "VEC", "FLAG"), ((B, 8, True), (H, 8, False), (F, 4, False)))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((8, 8, 4), "VEC"),
        ((7, 7, 7), "7"),
        ((2, 2, 4), "T.width // 8"),
        ((32, 32, 16), "VEC * 4"),
        ((9, 9, 5), "VEC + 1"),
        ((True, False, False), "FLAG"),
        ((8, None, 4), "VEC"),
    ],
)
def test_constants_are_written_with_parameters(values, text):
    assert PARAMS.express_const(values) == text


def test_every_expression_of_parameters_has_the_asked_values():
    class Dtype:
        def __init__(self, width):
            self.width = width

    widths = {B: 16, H: 16, F: 32}
    for values in [(8, 8, 4), (2, 2, 4), (64, 64, 16), (4, 4, 1), (3, 3, -1), (5, 6, 7), (1, 0, 2), (16, 16, 4)]:
        text = PARAMS.const_text(values)
        for i, (t, vec, flag) in enumerate(PARAMS.values):
            from porter.emit.spelling import dtype

            names = {d: Dtype(w) for d, w in (("BFloat16", 16), ("Float16", 16), ("Float32", 32))}
            names |= {"T": names[dtype(t)], "VEC": vec, "FLAG": flag}
            assert eval(text, {}, names) == values[i], text
    assert widths


def test_types_are_written_with_parameters():
    from porter.emit.spelling import dtype

    assert PARAMS.type_text((B, H, F), dtype) == "T"
    assert PARAMS.type_text((F, F, F), dtype) == "Float32"
    assert PARAMS.type_text((F, H, F), dtype) == "(Float16 if T is Float16 else Float32)"


def test_conditions_tell_instances_apart():
    assert PARAMS.condition((0,)) == "T is BFloat16"
    assert PARAMS.condition((2,)) == "T is Float32"
    assert PARAMS.condition((0, 1, 2)) == "True"


def statements(kind, count):
    x = ir.Var("x", type=kind)
    return tuple(ir.Assign(x, ir.Binary("+", x, ir.Const(i + 1, type=kind), type=kind)) for i in range(count))


def test_bodies_of_different_length_are_kept_apart_where_they_differ():
    a = statements(ir.I32, 3)
    b = (a[0], ir.ExprStmt(ir.Intrinsic("__syncthreads", (), type=ir.VOID)), *a[1:])
    merged = merge([a, b])
    assert specialise(merged, 0) == a
    assert specialise(merged, 1) == b
    assert merged[0] == a[0]


def test_a_type_that_changes_the_meaning_is_not_merged():
    a, b = statements(ir.I32, 1), statements(ir.F32, 1)
    b = (replace(b[0], value=replace(b[0].value, b=ir.Const(1.0, type=ir.F32))),)
    merged = merge([a, b])
    assert specialise(merged, 0) == a
    assert specialise(merged, 1) == b
    assert not isinstance(merged[0], ir.Assign)


def test_types_and_constants_become_variants():
    def body(t, n):
        return (
            ir.Decl("v", ir.Array(t, n)),
            ir.Assign(
                ir.Index(ir.Var("v", type=ir.Array(t, n)), ir.Const(n - 1, type=ir.I32), type=t),
                ir.Cast(ir.Var("f", type=F), type=t),
            ),
        )

    merged = merge([body(B, 8), body(H, 4)])
    assert isinstance(merged[0].type, Variants)
    assert isinstance(merged[1].target.index, ConstVariants)
    assert specialise(merged, 1) == body(H, 4)
