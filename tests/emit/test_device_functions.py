"""CUDA's device functions give in the port what they give in the original, to the bit."""

from __future__ import annotations

import re

import pytest

from tests.emit.device_functions import differing
from tools.device_functions import HEADERS, Function, callable_here, functions, status

# The libdevice that NVRTC has inside and the one that CuTeDSL links are of different versions: last bits differ.
VERSIONED = {"erf", "erff", "expm1", "expm1f", "cyl_bessel_i0f", "cyl_bessel_i1f", "sinhf", "sinh", "tanf", "tan"}
AT_MOST = 4  # in the last place, where versions differ


def float_(*names: str, count: int = 1) -> list[Function]:
    return [Function(n, "float", ("float",) * count) for n in names]


def double_(*names: str, count: int = 1) -> list[Function]:
    return [Function(n, "double", ("double",) * count) for n in names]


U, I, H, H2, B, B2 = "unsigned int", "int", "__half", "__half2", "__nv_bfloat16", "__nv_bfloat162"
GROUPS = {
    "floats": [
        *float_("normcdff", "erfinvf", "rcbrtf", "exp10f", "sinpif", "lgammaf", "j1f"),
        *float_("fmodf", "remainderf", "hypotf", "__fadd_rd", "__fdiv_ru", "__fmul_rz", count=2),
        *float_("norm3df", "__fmaf_rd", count=3),
        Function("ldexpf", "float", ("float", I)), Function("frexpf", "float", ("float", "int*")),
        Function("modff", "float", ("float", "float*")), Function("remquof", "float", ("float", "float", "int*")),
        Function("sincospif", "void", ("float", "float*", "float*")), Function("lroundf", "long", ("float",)),
        Function("scalblnf", "float", ("float", "long")),
    ],
    "doubles": [
        *double_("normcdf", "rcbrt", "cospi", "__drcp_ru", "__dsqrt_rd"),
        *double_("__dadd_ru", "__ddiv_rz", "fdim", "rhypot", count=2), *double_("__fma_rd", "norm3d", count=3),
        Function("__double2int_rd", I, ("double",)), Function("__double2ull_ru", "unsigned long long", ("double",)),
        Function("__hiloint2double", "double", (I, I)), Function("__double2float_rz", "float", ("double",)),
        Function("__brevll", "unsigned long long", ("unsigned long long",)), Function("__rhadd", I, (I, I)),
        Function("frexp", "double", ("double", "int*")),
    ],
    "words": [
        *(Function(f"__v{n}", U, (U, U)) for n in (
            "add4", "subss2", "addus4", "avgs4", "avgs2", "haddu2", "absdiffs4", "maxs2", "cmpgts4", "setleu2", "sads4",
        )),
        *(Function(f"__v{n}", U, (U,)) for n in ("abs4", "absss2", "neg2", "negss4")),
        Function("__viaddmax_s16x2_relu", U, (U, U, U)), Function("__vimin3_u16x2", U, (U, U, U)),
        Function("__byte_perm", U, (U, U, U)), Function("__hadd", I, (I, I)), Function("__uhadd", U, (U, U)),
        Function("__viaddmin_s32", I, (I, I, I)), Function("__vibmax_s16x2", U, (U, U, "bool*", "bool*")),
    ],
    "halves": [
        Function("__hadd_sat", H, (H, H)), Function("__hfma_relu", H, (H, H, H)), Function("__hmax_nan", H, (H, H)),
        Function("__hgtu", "bool", (H, H)), Function("__hneu2", H2, (H2, H2)), Function("__hle2_mask", U, (H2, H2)),
        Function("__hbequ2", "bool", (H2, H2)), Function("__hcmadd", H2, (H2, H2, H2)), Function("h2trunc", H2, (H2,)),
        Function("__half2short_ru", "short", (H,)), 
        Function("__half2uchar_rz", "unsigned char", (H,)),
        Function("__int2half_rd", H, (I,)), Function("__hisinf", I, (H,)),
        Function("__hsub_sat", B, (B, B)), Function("__hfma2_sat", B2, (B2, B2, B2)),
        Function("__hmin2_nan", B2, (B2, B2)),
        Function("htanh", B, (B,)), Function("htanh", H, (H,)), Function("__hlt2", B2, (B2, B2)),
        Function("__bfloat162ushort_rn", "unsigned short", (B,)),
        Function("__ll2bfloat16_ru", B, ("long long",)), Function("__highs2bfloat162", B2, (B2, B2)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", GROUPS)
def test_some_of_each_kind(group: str) -> None:
    assert differing(GROUPS[group]) == []


def test_other_architecture() -> None:
    assert differing([*GROUPS["halves"][:6], *GROUPS["words"][:4]], "sm_100a") == []


def test_all_of_the_headers_are_translated() -> None:
    """What is left out is named; a function that is lost, or a new one in the headers, shows."""
    left = {f.name for family in HEADERS for f, said in _answers(family) if said}
    assert left == {"norm", "rnorm", "normf", "rnormf", "nan", "nanf", "hexp10", "h2exp10", "__prof_trigger", "__brkpt",
                    "__pm0", "__pm1", "__pm2", "__pm3"}  # fmt: skip


def _answers(family: str) -> list[tuple[Function, str]]:
    found = list(functions(family))
    return list(zip(found, status(found), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("family", HEADERS)
def test_all_of_a_header(family: str) -> None:
    found = [f for f, said in _answers(family) if not said and callable_here(f)]
    assert len(found) > 80
    wrong = [said for i in range(0, len(found), 12) for said in differing(found[i : i + 12])]
    told = [w for w in wrong if w.split("(")[0] not in VERSIONED or _apart(w) > AT_MOST]
    assert told == []


def _apart(said: str) -> int:
    a, b = re.findall(r"\b[0-9a-f]{8,16}\b", said)[-2:]
    return abs(int(a, 16) - int(b, 16))
