"""What is known belongs to a definition: scopes and arms that share a name, ranges, and values at trace time."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter import ir
from porter.emit.definitions import declared_often, separate_definitions
from porter.emit.evaluate import evaluate, wrapped
from porter.emit.expressions.ranges import fits, interval, upper
from porter.emit.generic import ConstVariants, InstanceIf, Variants
from porter.emit.statements.loops import as_range, trips
from porter.patterns.tidy_names import tidy_names
from tests.emit.stages import emitted


def const(value, t=ir.I32):
    return ir.Const(value, type=t)


def var(name, t=ir.I32):
    return ir.Var(name, type=t)


def decl(name, value=0, t=ir.I32):
    return ir.Decl(name, t, value if isinstance(value, ir.Expr) else const(value, t))


def use(name):
    return ir.Assign(var("out"), var(name))


def binary(op, a, b, t=ir.I32):
    return ir.Binary(op, a, b, type=t)


YES = const(True, ir.BOOL)


def test_scopes_beside_each_other_and_inside_each_other() -> None:
    inner = ir.Scope((decl("k", 2), use("k"), ir.If(YES, (decl("k", 3), use("k")))))
    body, shown = separate_definitions((decl("a"), ir.Scope((decl("k", 1), use("k"))), inner, use("a")), 1, ["out"])
    assert body[1] == ir.Scope((decl("k", 1), use("k")))
    assert body[2].body[:2] == (decl("k_2", 2), use("k_2"))
    assert body[2].body[2].then == (decl("k_3", 3), use("k_3"))
    assert shown == {"a": "a", "k": "k", "k_2": "k", "k_3": "k"}


def test_the_head_of_a_loop_is_a_scope() -> None:
    step = ir.Assign(var("k"), binary("+", var("k"), const(1)))
    loop = ir.For((decl("k"),), binary("<", var("k"), const(4), ir.BOOL), (step,), (use("k"),))
    (first, second, after), shown = separate_definitions((loop, loop, decl("k", 9)), 1, ["out"])
    assert first == loop
    assert second.init == (decl("k_2"),) and second.body == (use("k_2"),)
    assert second.cond.a == var("k_2") and second.step[0].target == var("k_2")
    assert after == decl("k_3", 9)
    assert set(shown.values()) == {"k"}


def test_an_initialiser_means_the_outer_variable() -> None:
    body, _ = separate_definitions((decl("k"), ir.Scope((decl("k", binary("+", var("k"), const(1))), use("k")))))
    assert body[1].body == (decl("k_2", binary("+", var("k"), const(1))), use("k_2"))


def test_keys_keep_clear_of_names_that_stand_there() -> None:
    body, _ = separate_definitions((ir.Scope((decl("k"),)), ir.Scope((decl("k"), decl("k_2"), use("k")))), 1, ["k_3"])
    assert body[1].body == (decl("k_4"), decl("k_2"), use("k_4"))


def test_a_short_name_is_not_given_to_a_variable_around_another_of_that_name() -> None:
    flag = ir.BOOL
    inner = (decl("stop", 0, flag), ir.Assign(var("stop", flag), YES), ir.Assign(var("stop_2", flag), YES))
    outer = (decl("stop_2", 0, flag), ir.While(var("stop_2", flag), (ir.If(YES, inner),)))
    done = tidy_names(kernel_of(outer)).body
    kept, loop_ = done
    first, second, third = loop_.body[0].then
    assert kept.name == loop_.cond.name == third.target.name
    assert first.name == second.target.name != kept.name
    # where the scope is left before the other variable is declared, both may have it
    done = tidy_names(kernel_of((ir.If(YES, inner[:2]), *outer[:1]))).body
    assert [done[0].then[0].name, done[1].name] == ["stop", "stop"]


def kernel_of(body):
    return ir.Kernel("k", "k", (), tuple(body), {})


def test_arms_share_a_definition_only_where_later_code_means_both() -> None:
    arms = InstanceIf((((0,), (decl("x", 1), decl("y", 1))), ((1,), (decl("x", 2), decl("y", 2)))))
    body, shown = separate_definitions((arms, use("x")), 2, ["out"])
    (_, first), (_, second) = body[0].arms
    assert [d.name for d in (*first, *second)] == ["x", "y", "x", "y_2"]
    assert body[1] == use("x")
    assert declared_often(body) == {"x"}
    assert shown == {"x": "x", "y": "y", "y_2": "y"}


def test_one_use_may_mean_declarations_of_different_depth() -> None:
    outer = InstanceIf((((0,), (decl("x", 1),)),))
    inner = ir.Scope((InstanceIf((((1,), (decl("x", 2),)),)), use("x")))
    body, _ = separate_definitions((outer, inner), 2, ["out"])
    assert declared_often(body) == {"x"}
    only = ir.Scope((InstanceIf((((1,), (decl("x", 2), use("x"))),)),))
    body, _ = separate_definitions((outer, only), 2, ["out"])
    assert declared_often(body) == set()


ARMS = """\
template <int N> __global__ void k(int* out, const int* in) {
  int t = threadIdx.x;
  if constexpr (N == 3) {
    int* w = out + t;
    *w = in[t] / 2;
  } else {
    int w[4] = {1, 2, 3, in[t]};
    out[t] = w[in[t] & 3];
  }
  if constexpr (N == 3) {
    for (signed char x = 1; x <= 4; x += 3) out[t] += x;
  }
  if (in[t] > 3) {
    int x = in[t + 64] / N;
    for (int k = 0; k < (x & 7); k++) out[t] += k;
  }
}
"""


def test_arms_of_different_instances_that_share_a_name(tmp_path: Path) -> None:
    text = emitted(tmp_path, "py", ARMS, ("k<3>", "k<8>"))
    assert "w = out + t\n" in text and "lib.address" not in text  # the pointer is none of the array's memory
    pytest.importorskip("cutlass")
    assert emitted(tmp_path, "ptx", ARMS, ("k<3>", "k<8>")).count(".visible .entry") == 2


VALUE_OF_ONE_INSTANCE = """\
template <int N> __global__ void k(int* out, const int* in) {
  int t = threadIdx.x;
  if constexpr (N == 3) {
    const int n = 5;
    out[t] = n;
    for (int i = 0; i < n; i++) out[t] += in[i];
  } else {
    const int n = in[t];
    out[t] = n / 2;
    for (int i = 0; i < n; i++) out[t] += in[i];
  }
}
"""


def test_a_value_of_one_instance_is_not_another_ones(tmp_path: Path) -> None:
    text = emitted(tmp_path, "py", VALUE_OF_ONE_INSTANCE, ("k<3>", "k<8>"))
    assert "lib.c_div(n, 2)" in text and "range_constexpr(n)" not in text


POINTED_ELSEWHERE = """\
__global__ void k(int* out, const int* __restrict__ in) {
  const int* p = in;
  const int** where = &p;
  *where = out;
  out[threadIdx.x] = p[threadIdx.x + 1] + in[threadIdx.x];
}
"""


def test_a_pointer_that_another_one_reaches_keeps_no_promise(tmp_path: Path) -> None:
    text = emitted(tmp_path, "py", POINTED_ELSEWHERE)
    assert text.count("lib.ldg(") == 1


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("value", "t", "held"),
    [(-1, ir.U32, 2**32 - 1), (2**31, ir.I32, -(2**31)), (300, ir.U8, 44), (200, ir.I8, -56), (2, ir.BOOL, 1)],
)
def test_a_value_wraps_to_its_type(value, t, held) -> None:
    assert wrapped(value, t) == held
    assert evaluate(ir.Cast(const(value, ir.I64), type=t), 0, {}) == held


def test_values_at_trace_time_are_cs() -> None:
    below = binary("-", const(3, ir.U32), const(5, ir.U32), ir.U32)
    assert evaluate(binary("/", below, const(7, ir.U32), ir.U32), 0, {}) == (2**32 - 2) // 7
    assert evaluate(binary("/", const(-7), const(2)), 0, {}) == -3
    assert evaluate(binary("%", const(-7), const(2)), 0, {}) == -1
    assert evaluate(ir.Unary("~", const(3, ir.U32), type=ir.U32), 0, {}) == 2**32 - 4
    assert evaluate(binary("/", const(2**62 + 1, ir.I64), const(1, ir.I64), ir.I64), 0, {}) == 2**62 + 1
    merged = ir.Cast(ConstVariants((300, 3), type=ir.I32), type=Variants((ir.U8, ir.I32)))
    assert [evaluate(merged, i, {}) for i in (0, 1)] == [44, 3]


def test_no_upper_bound_where_a_number_may_be_negative_or_wrap() -> None:
    known = {"i": 10}
    i, u = var("i"), var("i", ir.U32)
    assert upper(binary("+", i, const(5)), known) == 15
    assert upper(binary("-", i, const(5)), known) is None
    assert upper(binary("*", i, const(2**30)), known) is None
    assert upper(binary("<<", u, const(30, ir.U32), ir.U32), known) is None
    assert upper(ir.Cast(binary("-", u, const(5, ir.U32), ir.U32), type=ir.I32), known) is None
    assert upper(ir.Cast(i, type=ir.I8), {"i": 200}) is None
    assert upper(ir.Unary("-", i, type=ir.I32), known) is None
    assert upper(ir.Intrinsic("min", (i, var("j")), type=ir.I32), known) is None
    assert upper(binary("%", var("j"), const(4)), known) is None
    assert upper(binary(">>", var("j"), const(4)), known) is None
    half = binary("/", const(1, ir.F32), const(2, ir.F32), ir.F32)
    assert upper(ir.Cast(binary("*", half, const(8, ir.F32), ir.F32), type=ir.I32), known) is None


def test_ranges_of_numbers_at_trace_time() -> None:
    known = {"k": (0, 5)}
    k = var("k", ir.U32)
    assert not fits(binary("-", k, const(4, ir.U32), ir.U32), known)
    assert fits(binary("+", k, const(4, ir.U32), ir.U32), known)
    assert interval(binary("-", k, const(4, ir.U32), ir.U32), known) == (0, 2**32 - 1)
    signed = {"k": (-3, 5)}
    assert interval(binary("/", var("k"), const(2)), signed) == (-1, 2)
    assert interval(binary("%", var("k"), const(4)), signed) == (-3, 3)
    assert interval(binary("&", var("k"), const(4)), signed) == (0, 4)
    assert interval(binary("|", var("k"), const(4)), signed) == (-8, 7)
    assert interval(binary(">>", var("k"), const(1)), signed) == (-2, 2)
    assert not fits(ir.Cast(var("k"), type=ir.U8), signed)
    assert not fits(binary("<<", const(1), const(31)), {})
    for low in range(-9, 9):
        for op in ("+", "-", "*", "/", "%", "&", "|", "^"):
            for other in (-3, -1, 1, 2, 6):
                found = interval(binary(op, var("k"), const(other)), {"k": (low, low + 4)})
                values = [evaluate(binary(op, const(x), const(other)), 0, {}) for x in range(low, low + 5)]
                assert found[0] <= min(values) and max(values) <= found[1], (op, low, other)


# ---------------------------------------------------------------- loops


def loop(start, test, end, op, by, body=(), t=ir.I32):
    k = var("k", t)
    step = ir.Assign(k, binary(op, k, by if isinstance(by, ir.Expr) else const(by, t), t))
    end = end if isinstance(end, ir.Expr) else const(end, t)
    return ir.For((decl("k", start, t),), binary(test, k, end, ir.BOOL), (step,), tuple(body))


def test_a_negative_step_is_a_step_down() -> None:
    down = as_range(loop(9, ">", 0, "+", -2))
    assert down is not None and down.descending and down.step == const(2)
    up = as_range(loop(0, "<", 9, "-", -2))
    assert up is not None and not up.descending and up.step == const(2)
    assert as_range(loop(0, "<", 9, "+", 0)) is None
    assert as_range(loop(0, "<", 9, "+", ConstVariants((2, -2), type=ir.I32))) is None


def test_an_end_that_a_pointer_reaches_is_read_at_each_turn() -> None:
    counted = loop(0, "<", var("end"), "+", 1, [use("k")])
    assert as_range(counted) is not None
    assert as_range(counted, memory={"end"}) is None
    assert as_range(counted, memory={"k"}) is None


def test_trips_wrap_to_the_type_of_the_index() -> None:
    assert trips(loop(1, "!=", const(0, ir.U32), "*", 65536, t=ir.U32), 0, {}) == [1, 65536]
    assert trips(loop(2, "<", 9, "-", 3, t=ir.U32), 0, {}) == [2]
