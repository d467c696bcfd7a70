"""Case files: what is read, the points they give, and that every mistake is refused with its line and key."""

from pathlib import Path

import pytest

from porter.case.fit import check_case
from porter.case.instances import instance_values
from porter.case.reader import case_path_for, load_case, parse_case
from porter.model import Instance, KernelInfo, KernelParam, PorterError, TemplateParam

TEXT = """schema = 1
kernel = "rms_norm_kernel"
source = "rms_norm.cu"

[[instances]]
args = ["__nv_bfloat16", 8]
when = "hidden % 8 == 0 and aligned(input, 16)"
[[instances]]
args = ["float", 1]

[sizes]
tokens = [0, 1, 7, 33]
hidden = [64, 65, 768]
blocks = "ceil_div(tokens, 4)"

[[shapes]]
tokens = 3
hidden = 12288

[[buffers]]
name = "out"
dtype = "scalar_t"
shape = ["tokens", "hidden"]
role = "out"

[[buffers]]
name = "input"
dtype = "scalar_t"
shape = ["tokens", "hidden"]
strides = ["input_stride", 1]

[[buffers]]
name = "weight"
dtype = "scalar_t"
shape = ["hidden"]
optional = true

[scalars]
epsilon = 1e-6
hidden_size = "hidden"
input_stride = ["hidden", "hidden + 8"]

[launch]
grid = ["tokens"]
block = ["min(hidden // VEC, 1024)", 1, 1]
smem = "sizeof(scalar_t) * 32"

[reference]
function = "rms_norm"

[tolerance]
out = { ulp = 1, reason = "as the original" }
"""
INFO = KernelInfo(
    "rms_norm_kernel",
    "rms_norm_kernel",
    (
        KernelParam("out", "scalar_t* __restrict__"),
        KernelParam("input", "const scalar_t* __restrict__"),
        KernelParam("weight", "const scalar_t*"),
        KernelParam("input_stride", "const int64_t"),
        KernelParam("epsilon", "float"),
        KernelParam("hidden_size", "int"),
    ),
    (TemplateParam("scalar_t", "type"), TemplateParam("VEC", "value", "int")),
)
PATH = Path("rms_norm.case.toml")


def read(text=TEXT):
    return parse_case(text, PATH)


def refused(text):
    with pytest.raises(PorterError) as error:
        case = parse_case(text, PATH)
        check_case(case, INFO)
    (diagnostic,) = error.value.diagnostics
    return diagnostic


def test_reads_everything():
    case = read()
    check_case(case, INFO)
    assert case.kernel == "rms_norm_kernel" and case.source_path == Path("rms_norm.cu")
    assert [i.args for i in case.instances] == [("__nv_bfloat16", "8"), ("float", "1")]
    assert case.buffer("input").strides == ("input_stride", "1") and case.buffer("out").line == 20
    assert case.reference == "rms_norm" and dict(case.tolerance)["out"].ulp == 1
    assert case.buffer("out").compare_at({"scalar_t": "bf16"}) == "close"
    assert case.buffer("out").compare_at({"scalar_t": "e4m3"}) == "exact"


def test_every_combination_is_a_point():
    case = read()
    values = instance_values(INFO, case.instances[0].instance)
    assert values == {"scalar_t": "bf16", "VEC": 8}
    points = case.points(values=values)
    assert len(points) == (4 * 3 * 2 + 2) * 2  # sizes x stride variants, the explicit shape, with and without weight
    assert points == sorted(points, key=lambda p: p.elements)
    point = next(p for p in points if p.sizes["tokens"] == 7 and p.scalars["input_stride"] == 776 and not p.null)
    assert point.sizes == {"tokens": 7, "hidden": 768, "blocks": 2}
    assert point.shapes["input"] == (7, 768) and point.strides["input"] == (776, 1)
    launch = case.launch_at(point, values)
    assert (launch.grid, launch.block, launch.smem) == ((7, 1, 1), (96, 1, 1), 64)
    assert case.launch_at(next(p for p in points if p.sizes["tokens"] == 0), values).is_empty


def test_when_chooses_the_points_of_an_instance():
    case = read()
    values = {"scalar_t": "bf16", "VEC": 8}
    assert {p.sizes["hidden"] for p in case.instance_points(case.instances[0], values)} == {64, 768, 12288}
    assert 65 in {p.sizes["hidden"] for p in case.instance_points(case.instances[1], values)}


@pytest.mark.parametrize("seed", range(20))
def test_a_limited_choice_covers_every_value(seed):
    case = read()
    values = {"scalar_t": "f32", "VEC": 1}
    points = case.points(9, seed, values)
    assert len(points) == 9
    assert {p.sizes["tokens"] for p in points} >= {0, 1, 7, 33}
    assert {p.sizes["hidden"] for p in points} >= {64, 65, 768, 12288}
    assert {bool(p.null) for p in points} == {True, False}
    assert case.points(9, seed, values) == points


def test_many_combinations_are_sampled():
    text = TEXT.replace("tokens = [0, 1, 7, 33]", f"tokens = {list(range(900))}")
    text = text.replace("hidden = [64, 65, 768]", f"hidden = {list(range(64, 964))}")
    assert len(read(text).points(12, 1, {"scalar_t": "f32", "VEC": 1})) == 12


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "message", "help"),
    [
        ("kernel =", "kernal =", "PRT901", "kernal =", "unknown key `kernal`", "did you mean `kernel`"),
        ('role = "out"', 'rol = "out"', "PRT901", 'rol = "out"', "buffers.out.rol", "`role`"),
        ('role = "out"', 'role = "output"', "PRT903", 'role = "output"', "`output` is not one of", "`out`"),
        ('kernel = "rms_norm_kernel"\n', "", "PRT902", "schema", "`kernel` is missing", ""),
        ("grid = [", "grids = [", "PRT901", "grids = [", "launch.grids", "`grid`"),
        ('block = ["min', 'block = ["mim', "PRT904", 'block = ["mim', "unknown function mim", ""),
        (
            "hidden // VEC, 1024",
            "hiden // VEC, 1024",
            "PRT904",
            "hiden // VEC, 1024",
            "unknown name `hiden`",
            "`hidden`",
        ),
        ("tokens = [0, 1, 7, 33]", "tokens = [0, 1.5]", "PRT903", "tokens = [0, 1.5]", "1.5", ""),
        ("tokens = [0, 1, 7, 33]", "tokens = []", "PRT903", "tokens = []", "empty list", ""),
        ("tokens = 3\n", "", "PRT902", "[[shapes]]", "`tokens` is missing", ""),
        ('strides = ["input_stride", 1]', "strides = [1]", "PRT903", "strides = [1]", "1 stride for 2", ""),
        ('name = "weight"', 'name = "wieght"', "PRT905", "wieght", "no pointer parameter `wieght`", "`weight`"),
        ("epsilon = 1e-6\n", "", "PRT905", "[scalars]", "no value for the parameter `epsilon`", ""),
        (
            '"__nv_bfloat16", 8]',
            '"__nv_bfloat16", 8, 9]',
            "PRT906",
            '"__nv_bfloat16", 8, 9]',
            "3 template arguments for 2",
            "",
        ),
        ("schema = 1", "schema = 7", "PRT903", "schema = 7", "schema 1", ""),
        ("optional = true", 'optional = "yes"', "PRT903", 'optional = "yes"', "true or false", ""),
        ("optional = true", 'compare = "none"', "PRT902", 'compare = "none"', "compare_reason", ""),
        ("optional = true", "init = 0", "PRT903", "init = 0", "out and scratch", ""),
        ("optional = true", 'dist = "gauss"', "PRT903", 'dist = "gauss"', "gauss", ""),
        ("out = {", "outt = {", "PRT901", "outt = {", "unknown key `outt`", "`out`"),
        ("ulp = 1", "ulp = -1", "PRT903", "ulp = -1", "not negative", ""),
        ("hidden = 12288", "hidden = 12288\nhidden = 3", "PRT900", "hidden = 3", "not TOML", ""),
        ("tokens = [0,", "tokens = 0,", "PRT900", "tokens = 0,", "not TOML", ""),
        ("when = ", "when = 3 #", "PRT903", "when = 3 #", "a string", ""),
        ("hidden % 8 == 0 and", "import os and", "PRT904", "import os and", "not an expression", ""),
    ],
)
def test_mistakes_are_refused_with_line_and_key(old, new, code, line, message, help):
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    diagnostic = refused(text)
    assert diagnostic.code == code
    assert line in text.splitlines()[diagnostic.span.line - 1], diagnostic
    assert diagnostic.span.file == str(PATH)
    assert message in diagnostic.message and help in diagnostic.help, diagnostic


def test_expression_failures_at_a_point_name_the_key():
    case = read(TEXT.replace('"ceil_div(tokens, 4)"', '"tokens - 2"'))
    with pytest.raises(PorterError) as error:
        case.points(values={"scalar_t": "f32", "VEC": 1})
    assert error.value.diagnostics[0].code == "PRT904" and error.value.diagnostics[0].span.line == 14
    case = read(TEXT.replace("hidden // VEC, 1024", "hidden / VEC, 1024"))
    point = next(p for p in case.points(values={"scalar_t": "f32", "VEC": 7}) if p.sizes["hidden"] == 64)
    with pytest.raises(PorterError, match="not a whole number"):
        case.launch_at(point, {"scalar_t": "f32", "VEC": 7})


def test_a_missing_file_is_a_diagnostic(tmp_path):
    with pytest.raises(PorterError, match="no case file"):
        load_case(tmp_path / "none.case.toml")


def test_lookup_beside_the_source(tmp_path):
    source = tmp_path / "norm.cu"
    assert case_path_for(source, "k") is None
    (tmp_path / "norm.case.toml").write_text(TEXT)
    assert case_path_for(source, "k") == tmp_path / "norm.case.toml"
    (tmp_path / "norm.k.case.toml").write_text(TEXT)
    assert case_path_for(source, "k") == tmp_path / "norm.k.case.toml"
    assert load_case(tmp_path / "norm.k.case.toml").source == "rms_norm.cu"


# ---------------------------------------------------------------- instances

TEMPLATE = KernelInfo(
    "k",
    "k",
    (),
    (
        TemplateParam("T", "type"),
        TemplateParam("VEC", "value", "int", "16 / sizeof(T)"),
        TemplateParam("FAST", "value", "bool", "false"),
        TemplateParam("OutT", "type", default="T"),
    ),
)


@pytest.mark.parametrize(
    ("args", "values"),
    [
        (("__nv_bfloat16", "8"), {"T": "bf16", "VEC": 8, "FAST": False, "OutT": "bf16"}),
        (("c10::Half",), {"T": "f16", "VEC": 8, "FAST": False, "OutT": "f16"}),
        (("float", "4u", "true", "c10::Float8_e4m3fn"), {"T": "f32", "VEC": 4, "FAST": True, "OutT": "e4m3"}),
        (("at::BFloat16", "0x10", "1"), {"T": "bf16", "VEC": 16, "FAST": True, "OutT": "bf16"}),
        (("unsigned char", "Width(2)"), {"T": "u8", "VEC": 2, "FAST": False, "OutT": "u8"}),
        (("float4", "1"), {"T": "float4", "VEC": 1, "FAST": False, "OutT": "float4"}),
    ],
)
def test_instance_values(args, values):
    got = instance_values(TEMPLATE, Instance(args))
    assert got == values and list(got) == ["T", "VEC", "FAST", "OutT"]
    assert type(got["FAST"]) is bool and type(got["VEC"]) is int


@pytest.mark.parametrize("args", [(), ("float", "Mode::kFast"), ("float", "1", "1", "float", "2")])
def test_bad_instances(args):
    with pytest.raises(PorterError) as error:
        instance_values(TEMPLATE, Instance(args))
    assert error.value.diagnostics[0].code == "PRT906"
