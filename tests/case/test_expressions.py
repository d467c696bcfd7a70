"""The case language: what it evaluates to, how it prints, and what it refuses."""

import itertools
import math

import pytest

from porter.case import expressions
from porter.case.expressions import ExprError, evaluate, names_in, to_python
from porter.cxx.expressions import to_case_expression

NAMES = {"hidden": 768, "tokens": 7, "VEC": 8, "scalar_t": "bf16", "half_size": 3, "flag": True, "in": 5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("min(hidden // VEC, 1024)", 96),
        ("ceil_div(hidden, 100)", 8),
        ("round_up(tokens, 4)", 8),
        ("next_pow2(hidden)", 1024),
        ("next_pow2(0)", 1),
        ("sizeof(scalar_t) * 4", 8),
        ("sizeof(float) + sizeof(e4m3) + sizeof(i64)", 13),
        ("scalar_t == bf16", True),
        ("hidden % 8 == 0 and aligned(input, 16)", True),
        ("1.0 / sqrt(VEC * 2)", 0.25),
        ("tokens if flag else 0", 7),
        ("1 < tokens <= 7", True),
        ("not flag or tokens == 0", False),
        ("in * 2", 10),
        ("true", True),
        ("1 << 4 | 3", 19),
        ("-tokens ** 2", -49),
        ("int(tokens / 2)", 3),
    ],
)
def test_values(text, value):
    got = evaluate(text, NAMES)
    assert got == value
    assert type(got) is type(value)


def test_sm_count_and_alignment_are_given_by_the_caller():
    assert evaluate("min(tokens, sm_count())", {"tokens": 1000}, sm_count=8) == 8
    assert evaluate("aligned(x, 16)", {}, aligned=lambda name, n: (name, n) != ("x", 16)) is False


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__import__('os').system('x')", "not allowed"),
        ("hidden.bit_length()", "not allowed"),
        ("(lambda: 1)()", "not an expression"),
        ("[1, 2]", "not allowed"),
        ("'text'", "not allowed"),
        ("hidden[0]", "not allowed"),
        ("{1: 2}", "not allowed"),
        ("open(hidden)", "unknown function"),
        ("min(*hidden)", "not allowed"),
        ("max(1, key=2)", "not allowed"),
        ("min(1)", "takes 2"),
        ("sizeof(8)", "name of a type"),
        ("a ? b : c", "if c else b"),
        ("1 +", "not an expression"),
        ("", "empty"),
        ("(" * 5000 + "1" + ")" * 5000, "not"),
        ("1 + " * 50000 + "1", "nested"),
        ("x := 3", "not an expression"),
        ("1j", "not allowed"),
    ],
)
def test_refused(text, reason):
    with pytest.raises(ExprError, match=reason):
        expressions.parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hiden + 1", "unknown name hiden"),
        ("hidden // (tokens - 7)", "division by zero"),
        ("scalar_t + 1", "not a number"),
        ("9 ** 9 ** 9", "bits"),
        ("1 << 1000000000", "bits"),
        ("sizeof(hidden)", "not a type"),
        ("sqrt(0 - 1)", "domain|nonnegative"),
    ],
)
def test_evaluation_errors_name_the_expression(text, reason):
    with pytest.raises(ExprError, match=reason) as error:
        evaluate(text, NAMES)
    assert text in str(error.value)


def test_names_in():
    text = "min(hidden // VEC, sizeof(scalar_t)) if aligned(in, 16) else 0"
    assert names_in(text) == {"hidden", "VEC", "scalar_t", "in"}
    assert expressions.uses_aligned("aligned(x, 4)") and not expressions.uses_aligned("aligned_rows")


def test_printed_python_means_the_same():
    texts = [
        "min(a // b, 1024)", "ceil_div(a + 1, b)", "round_up(a, b) // 4", "next_pow2(a) + 1", "(a + b) * (a - b)",
        "a - (b - 3)", "a if a < b else b * 2", "not (a < b and b < 9) or a == 3", "-(a + b) ** 2", "(a, b)[0]",
        "2 ** (a % 3) ** 2", "(2 ** b) ** 2", "a & 3 | b << 1", "ceil_div(round_up(a, 8), b) * ceil_div(b, 2)",
        "(a if b > 2 else b) + 1", "a / b", "1.5 * sqrt(b)", "(a < b) == (b < a)", "-a // b", "-(a // b)",
    ]  # fmt: skip
    tried = 0
    for text in texts:
        try:
            expressions.parse(text)
        except ExprError:
            continue
        source = to_python(text)
        for a, b in itertools.product((0, 1, 7, 64, 100), (1, 2, 3, 8)):
            want = evaluate(text, {"a": a, "b": b})
            assert eval(source, {"math": math}, {"a": a, "b": b}) == want, (text, source, a, b)
            tried += 1
    assert tried > 300


def test_printing_takes_the_port_s_spellings():
    text = "min(in // sizeof(scalar_t), sm_count()) if aligned(x, 16) else sizeof(float)"
    assert to_python(text) == "min(in_ // (scalar_t.width // 8), sm_count()) if x.data_ptr() % 16 == 0 else 4"
    got = to_python(text, names={"in": "mIn.shape[0]"}, functions={"aligned": lambda a: f"is_aligned({', '.join(a)})"})
    assert got == "min(mIn.shape[0] // (scalar_t.width // 8), sm_count()) if is_aligned(x, 16) else 4"


@pytest.mark.parametrize(
    ("cxx", "text"),
    [
        ("(hidden + 255) / 256", "ceil_div(hidden, 256)"),
        ("(n + VEC - 1) / VEC", "ceil_div(n, VEC)"),
        ("std::min<int>(hidden / VEC, 1024)", "min(hidden // VEC, 1024)"),
        ("(unsigned)n * sizeof(float)", "n * sizeof(f32)"),
        ("static_cast<int64_t>(n) * 32u", "(n) * 32"),
        ("n < 4 ? 1 : 2", "1 if (n < 4) else 2"),
        ("flag && !other", "flag and (not other)"),
        ("cdiv(n, 4)", "ceil_div(n, 4)"),
        ("0x20UL", "0x20"),
        ("010", "0o10"),
        ("min(1024, n) * sizeof(scalar_t)", "min(1024, n) * sizeof(scalar_t)"),
        ("input.size(0)", None),
        ("a < b < c", None),
        ("n++", None),
        ("f(n)", None),
        ("static_cast<float>(n)", None),
        ('"text"', None),
        ("(n", None),
    ],
)
def test_cxx_expressions(cxx, text):
    assert to_case_expression(cxx) == text
    if text:
        expressions.parse(text)


def test_cxx_names_are_replaced_whole():
    assert to_case_expression("threads * blocks", {"threads": "min(n, 1024)", "blocks": "b"}) == "(min(n, 1024)) * b"
