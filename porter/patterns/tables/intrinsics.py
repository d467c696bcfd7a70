"""One row per CUDA function: its name and the CuTeDSL expression it becomes. Facts only; judgement lives in patterns/.

A row's `emit` is a format string over the arguments {0}, {1}, ... and {T} (result type), {A} (type of argument 0).
`kinds` says how each argument is printed: "v" a DSL value of its own type (default), "s" static text allowed (Python
number or value), "p" pointer, "l" place (assigned by the call; not used by format rows).
`effect` rows must not be moved, duplicated or skipped. Rows are tried in order; `when` is a predicate on argument 0's
scalar type name ("f32", "i32", ...).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from porter.patterns.tables.libdevice import DTYPES, SIGNATURES

HALF = ("f16", "bf16")
FLOAT = ("f32",)
UNSIGNED = ("u8", "u16", "u32", "u64")


@dataclass(frozen=True)
class Row:
    cuda: str
    emit: str
    when: tuple[str, ...] = ()
    kinds: str = ""
    effect: bool = False
    note: str = ""


def _rows(*specs: tuple[str, str] | tuple[str, str, dict]) -> list[Row]:
    return [Row(s[0], s[1], **(s[2] if len(s) > 2 else {})) for s in specs]  # type: ignore[misc]


_E = {"effect": True}

_ACCURATE = (  # of one argument; with an f behind it the float32 form
    "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "tanh", "sin",
    "cos", "tan", "erf", "erfc", "floor", "ceil", "trunc", "round", "cbrt",
    "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "sqrt",
)  # fmt: skip

# Functions of libdevice that CUDA spells with two underscores in front.
_INTRINSIC = re.compile(
    r".*_(rn|rz|rd|ru)|double2(hi|lo)int|hiloint2double|brevll|u?mul64hi|u?r?hadd|u?sad"
)  # fmt: skip


def _libdevice() -> list[Row]:
    """A row for every function of libdevice with one result, under CUDA's names: `erfinvf`, `erfinv` of either type."""
    found = []
    for name, signature in SIGNATURES.items():
        result, taken, *out = signature.split()
        if out:
            stored = "".join(out)
            kinds = stored if result == "v" else result + stored
            types = ", ".join(DTYPES[k] for k in kinds)
            arguments = "".join(f", {{{i}}}" for i in range(len(taken)))
            pair = f'lib.libdevice_pair("{name}", ({types}){arguments})'
            found += [Row(f"__porter_{name}_{part}", f"{pair}[{n}]") for n, part in enumerate(("first", "second"))]
            continue
        arguments = "".join(f", {{{i}}}" for i in range(len(taken)))
        call = f'lib.libdevice("{name}", {DTYPES[result]}{arguments})'
        if _INTRINSIC.fullmatch(name):
            found.append(Row(f"__{name}", call, ("i32", "u32") if name == "hadd" else ()))
            continue
        overloaded = name[:-1] if name.endswith("f") and name[:-1] in SIGNATURES else ""
        if overloaded and "f" in taken:
            found.append(Row(overloaded, call, FLOAT if taken[0] == "f" else ()))
        found.append(Row(name, call))
    more = [
        Row("fdivide", "({0} / {1})"),
        Row("lroundf", 'lib.libdevice("llroundf", Int64, {0})'), Row("lround", 'lib.libdevice("llroundf", Int64, {0})', FLOAT),
        Row("lround", 'lib.libdevice("llround", Int64, {0})'), Row("lrint", 'lib.libdevice("llrintf", Int64, {0})', FLOAT),
        Row("lrint", 'lib.libdevice("llrint", Int64, {0})'), Row("__tanf", 'lib.libdevice("fast_tanf", Float32, {0})'),
        Row("signbit", 'lib.libdevice("signbitd", Int32, {0}) != 0', ("f64",)),
    ]  # fmt: skip
    return [*more, *found]


ROWS: list[Row] = [
    # ---- fast math
    *_rows(
        ("__expf", "lib.exp_approx({0})"),
        ("__exp10f", "lib.exp10_approx({0})"),
        ("__logf", "lib.log_approx({0})"),
        ("__log2f", "lib.log2_approx({0})"),
        ("__log10f", "lib.log10_approx({0})"),
        ("__powf", "lib.pow_approx({0}, {1})"),
        ("__sinf", "lib.sin_approx({0})"),
        ("__cosf", "lib.cos_approx({0})"),
        ("__tanhf", "lib.tanh_approx({0})"),
        ("__fdividef", "lib.div_approx({0}, {1})"),
        ("fdividef", "({0} / {1})"),
        ("__frcp_rn", "lib.rcp_rn({0})"),
        ("__frsqrt_rn", "lib.rsqrt_rn({0})"),
        ("__fsqrt_rn", "lib.sqrt_rn({0})"),
        ("__fadd_rn", "lib.add_rn({0}, {1})"),
        ("__fsub_rn", "lib.sub_rn({0}, {1})"),
        ("__fmul_rn", "lib.mul_rn({0}, {1})"),
        ("__fdiv_rn", "lib.div_rn({0}, {1})"),
        ("__fmaf_rn", "lib.fma({0}, {1}, {2})"),
        ("__saturatef", "lib.saturate({0})"),
        ("rsqrtf", "lib.rsqrt({0})"),
        ("rsqrt", "lib.rsqrt({0})", {"when": FLOAT}),
        ("rsqrt", "cute.math.rsqrt({0})"),
        ("rcp.approx", "lib.rcp_approx({0})"),
    ),
    # ---- accurate math: the same expansions as libdevice
    *(Row(f"{n}f", f"cute.math.{n}({{0}})") for n in _ACCURATE),
    *(Row(n, f"cute.math.{n}({{0}})") for n in _ACCURATE),
    *_rows(
        ("fabsf", "cute.math.abs({0})"),
        ("fabs", "cute.math.abs({0})"),
        ("abs", "cute.math.abs({0})", {"when": ("f32", "f64")}),
        ("abs", "lib.iabs({0})"),
        ("labs", "lib.iabs({0})"),
        ("llabs", "lib.iabs({0})"),
        ("powf", "cute.math.pow({0}, {1})"),
        ("pow", "cute.math.pow({T}({0}), {T}({1}))"),
        ("atan2f", "cute.math.atan2({0}, {1})"),
        ("copysignf", "cute.math.copysign({0}, {1})"),
        ("nextafterf", "lib.next_after({0}, {1})"),
        ("nextafter", "lib.next_after({0}, {1})", {"when": FLOAT}),
        ("fmaf", "lib.fma({0}, {1}, {2})"),
        ("fma", "lib.fma({0}, {1}, {2})"),
        ("fmaxf", "lib.fmax({0}, {1})"),
        ("fminf", "lib.fmin({0}, {1})"),
        ("fmax", "lib.fmax({0}, {1})", {"when": FLOAT}),
        ("fmin", "lib.fmin({0}, {1})", {"when": FLOAT}),
        ("fmax", "lib.fmax64({0}, {1})", {"when": ("f64",)}),
        ("fmin", "lib.fmin64({0}, {1})", {"when": ("f64",)}),
        ("max", "lib.fmax({0}, {1})", {"when": FLOAT}),
        ("min", "lib.fmin({0}, {1})", {"when": FLOAT}),
        ("max", "lib.fmax64({0}, {1})", {"when": ("f64",)}),
        ("min", "lib.fmin64({0}, {1})", {"when": ("f64",)}),
        ("max", "lib.hmax({0}, {1})", {"when": HALF}),
        ("min", "lib.hmin({0}, {1})", {"when": HALF}),
        # CuTeDSL's own compare a constant first operand with an unsigned number as signed ones
        ("max", "lib.imax({0}, {1})", {"when": UNSIGNED}),
        ("min", "lib.imin({0}, {1})", {"when": UNSIGNED}),
        ("max", "max({0}, {1})"),
        ("min", "min({0}, {1})"),
        ("umax", "lib.imax({0}, {1})"),
        ("umin", "lib.imin({0}, {1})"),
        ("ullmax", "lib.imax({0}, {1})"),
        ("ullmin", "lib.imin({0}, {1})"),
        ("llmax", "max({0}, {1})"),
        ("llmin", "min({0}, {1})"),
        ("isnan", "lib.isnan({0})"),
        ("isinf", "lib.isinf({0})"),
        ("isfinite", "lib.isfinite({0})"),
        ("__isnanf", "lib.isnan({0})"),
        ("signbit", "(lib.bits({0}, Int32) < 0)", {"when": FLOAT}),
        ("rintf", "lib.rint({0})"),
        ("nearbyintf", "lib.rint({0})"),
        ("rint", "lib.rint({0})", {"when": FLOAT}),
        ("nearbyint", "lib.rint({0})", {"when": FLOAT}),
        ("lrintf", 'lib.float_to_int({0}, Int64, "rni")'),
        ("llrintf", 'lib.float_to_int({0}, Int64, "rni")'),
        ("roundevenf", "lib.rint({0})"),
    ),
    # ---- conversions
    *[
        Row(f"__float2{n}_{r}", f'lib.float_to_int({{0}}, {t}, "r{c}i")')
        for n, t in (("int", "Int32"), ("uint", "Uint32"), ("ll", "Int64"), ("ull", "Uint64"))
        for r, c in (("rn", "n"), ("rz", "z"), ("rd", "m"), ("ru", "p"))
    ],
    *[
        Row(f"__{n}2float_{r}", f'lib.int_to_float({{0}}, "{c}")')
        for n in ("int", "uint", "ll", "ull")
        for r, c in (("rn", "rn"), ("rz", "rz"), ("rd", "rm"), ("ru", "rp"))
    ],
    *_rows(
        ("__float_as_int", "lib.bits({0}, Int32)"),
        ("__float_as_uint", "lib.bits({0}, Uint32)"),
        ("__int_as_float", "lib.bits({0}, Float32)"),
        ("__uint_as_float", "lib.bits({0}, Float32)"),
        ("__double_as_longlong", "lib.bits({0}, Int64)"),
        ("__longlong_as_double", "lib.bits({0}, Float64)"),
        ("__half_as_ushort", "lib.bits({0}, Uint16)"),
        ("__half_as_short", "lib.bits({0}, Int16)"),
        ("__ushort_as_half", "lib.bits({0}, Float16)"),
        ("__short_as_half", "lib.bits({0}, Float16)"),
        ("__bfloat16_as_ushort", "lib.bits({0}, Uint16)"),
        ("__bfloat16_as_short", "lib.bits({0}, Int16)"),
        ("__ushort_as_bfloat16", "lib.bits({0}, BFloat16)"),
        ("__short_as_bfloat16", "lib.bits({0}, BFloat16)"),
    ),
    *[Row(n, "Float32({0})") for n in ("__half2float", "__bfloat162float", "__internal_halfraw2float")],
    *[Row(n, "Float16({0})") for n in ("__float2half", "__float2half_rn")],
    *[Row(n, "BFloat16({0})") for n in ("__float2bfloat16", "__float2bfloat16_rn")],
    *[
        Row(f"__float2{n}_{r}", f'lib.float_to_half({{0}}, {t}, "{c}")')
        for n, t in (("half", "Float16"), ("bfloat16", "BFloat16"))
        for r, c in (("rz", "rz"), ("rd", "rm"), ("ru", "rp"))
    ],
    *[
        Row(f"__{h}2{n}_{r}", f'lib.float_to_int(Float32({{0}}), {t}, "r{c}i")')
        for h in ("half", "bfloat16")
        for n, t in (("int", "Int32"), ("uint", "Uint32"), ("ll", "Int64"), ("ull", "Uint64"))
        for r, c in (("rn", "n"), ("rz", "z"), ("rd", "m"), ("ru", "p"))
    ],
    *[
        Row(f"__{n}2{h}_rn", f"{t}(Float32({{0}}))")
        for n in ("int", "uint", "short", "ushort", "ll", "ull")
        for h, t in (("half", "Float16"), ("bfloat16", "BFloat16"))
    ],
    *[  # twice in one direction is once
        Row(f"__{n}2{h}_{r}", f'lib.float_to_half(lib.int_to_float({i}, "{c}"), {t}, "{c}")')
        for n, i in (
            *((n, "{0}") for n in ("int", "uint", "ll", "ull")),
            ("short", "Int32({0})"),
            ("ushort", "Uint32({0})"),
        )
        for h, t in (("half", "Float16"), ("bfloat16", "BFloat16"))
        for r, c in (("rz", "rz"), ("rd", "rm"), ("ru", "rp"))
    ],
    *_rows(
        ("__double2half", "Float16({0})"),
        ("__double2bfloat16", "BFloat16({0})"),
        ("__double2float_rn", "Float32({0})"),
        ("__float2double_rn", "Float64({0})"),
        ("__int2double_rn", "Float64({0})"),
        ("__double2int_rz", "Int32({0})"),
    ),
    # ---- half arithmetic: float32 in between is exact after the final rounding (24 >= 2 * 11 + 2 bits)
    *[
        Row(n, f"{{A}}(Float32({{0}}) {op} Float32({{1}}))", HALF)  # __hadd is a function of integers too
        for op, names in (
            ("+", ("__hadd",)),
            ("-", ("__hsub",)),
            ("*", ("__hmul",)),
            ("/", ("__hdiv",)),
        )
        for n in names
    ],
    *[Row(f"__h{n}_rn", f'lib.half_rn("{n}", {{0}}, {{1}})') for n in ("add", "sub", "mul")],
    *[
        Row(n, f"(Float32({{0}}) {op} Float32({{1}}))")
        for n, op in (("__heq", "=="), ("__hlt", "<"), ("__hle", "<="), ("__hgt", ">"), ("__hge", ">="))
    ],
    *_rows(
        ("__hne", "((Float32({0}) < Float32({1})) | (Float32({0}) > Float32({1})))"),
        ("__hneg", "{A}(-Float32({0}))"),
        ("__habs", "{A}(cute.math.abs(Float32({0})))"),
        ("__hfma", "lib.fma_half({0}, {1}, {2})"),
        ("__hmax", "lib.hmax({0}, {1})"),
        ("__hmin", "lib.hmin({0}, {1})"),
        ("__hisnan", "lib.isnan({0})"),
        *((n, f"lib.{n}({{0}})") for n in ("hexp", "hexp2", "hlog", "hlog2", "hlog10", "hsqrt", "hrsqrt", "hrcp")),
        ("htanh", "BFloat16(lib.tanh_approx(Float32({0})))", {"when": ("bf16",)}),
        ("htanh", "{A}(cute.math.tanh(Float32({0})))"),
        ("hsin", "{A}(cute.math.sin(Float32({0})))"),
        ("hcos", "{A}(cute.math.cos(Float32({0})))"),
        ("hfloor", "{A}(cute.math.floor(Float32({0})))"),
        ("hceil", "{A}(cute.math.ceil(Float32({0})))"),
        ("hrint", "{A}(lib.rint(Float32({0})))"),
        ("htrunc", "{A}(cute.math.trunc(Float32({0})))"),
        ("htanh_approx", "lib.htanh_approx({0})"),
    ),
    # ---- integers and bits
    *_rows(
        ("__popc", "lib.popc({0})"),
        ("__popcll", "lib.popc64({0})"),
        ("__clz", "lib.clz({0})"),
        ("__clzll", "lib.clz64({0})"),
        ("__ffs", "lib.ffs({0})"),
        ("__ffsll", "lib.ffs64({0})"),
        ("__brev", "lib.brev({0})"),
        ("__byte_perm", "lib.byte_perm({0}, {1}, {2})"),
        ("__umulhi", "lib.mul_hi({0}, {1})"),
        ("__mulhi", "lib.mul_hi({0}, {1})"),
        ("__umul64hi", "lib.mul_hi64({0}, {1})"),
        ("__mul24", "(({0} << 8 >> 8) * ({1} << 8 >> 8))"),
        ("__umul24", "(({0} & 0xFFFFFF) * ({1} & 0xFFFFFF))"),
        ("__funnelshift_l", "lib.funnel_shift_l({0}, {1}, {2})"),
        ("__funnelshift_r", "lib.funnel_shift_r({0}, {1}, {2})"),
        ("__dp4a", "lib.dp4a({0}, {1}, {2})", {"when": ("i32",)}),
        ("__sad", "lib.sad({0}, {1}, {2})"),
    ),
    # ---- warp
    *_rows(
        ("__shfl_xor_sync", "lib.shfl_xor({1}, {2}, {0}, {3})", {"kinds": "svss", "effect": True}),
        ("__shfl_down_sync", "lib.shfl_down({1}, {2}, {0}, {3})", {"kinds": "svss", "effect": True}),
        ("__shfl_up_sync", "lib.shfl_up({1}, {2}, {0}, {3})", {"kinds": "svss", "effect": True}),
        ("__shfl_sync", "lib.shfl({1}, {2}, {0}, {3})", {"kinds": "svss", "effect": True}),
        ("__ballot_sync", "lib.ballot({1}, {0})", {"kinds": "sv", "effect": True}),
        ("__any_sync", "Int32(lib.any_sync({1}, {0}))", {"kinds": "sv", "effect": True}),
        ("__all_sync", "Int32(lib.all_sync({1}, {0}))", {"kinds": "sv", "effect": True}),
        ("__match_any_sync", "lib.match_any({1}, {0})", {"kinds": "sv", "effect": True}),
        ("__activemask", "lib.activemask()", _E),
        ("__syncwarp", "lib.sync_warp({0})", {"kinds": "s", "effect": True}),
    ),
    *[
        Row(f"__reduce_{op}_sync", f'lib.redux({{1}}, "{op}", {{0}})', kinds="sv", effect=True)
        for op in ("add", "min", "max", "and", "or", "xor")
    ],
    # ---- block and memory order
    *_rows(
        ("__syncthreads", "cute.arch.sync_threads()", _E),
        ("__syncthreads_count", "lib.sync_threads_count({0})", _E),
        ("__syncthreads_or", "Int32(lib.sync_threads_or({0}))", _E),
        ("__syncthreads_and", "Int32(lib.sync_threads_and({0}))", _E),
        ("__threadfence", "lib.fence()", _E),
        ("__threadfence_block", "lib.fence_block()", _E),
        ("__threadfence_system", "lib.fence_system()", _E),
        ("__trap", "lib.trap()", _E),
        ("__nanosleep", "lib.nanosleep({0})", _E),
        ("cudaGridDependencySynchronize", "lib.pdl_wait()", _E),
        ("cudaTriggerProgrammaticLaunchCompletion", "lib.pdl_launch_dependents()", _E),
        ("clock64", "Int64(cute.arch.clock64())", _E),
        ("clock", "Int32(cute.arch.clock())", _E),
    ),
    # ---- atomics
    *[
        Row(f"atomic{n}{s}", f"lib.atomic_{f}({{0}}, {{1}})", kinds="pv", effect=True)
        for n, f in (
            ("Add", "add"),
            ("Sub", "sub"),
            ("Max", "max"),
            ("Min", "min"),
            ("And", "and"),
            ("Or", "or"),
            ("Xor", "xor"),
            ("Exch", "exch"),
            ("Inc", "inc"),
            ("Dec", "dec"),
        )
        for s in ("", "_block", "_system")
    ],
    Row("atomicCAS", "lib.atomic_cas({0}, {1}, {2})", kinds="pvv", effect=True),
]
ROWS += [row for row in _libdevice() if not any(r.cuda == row.cuda and not r.when for r in ROWS)]

#: loads and stores with cache hints: the hint is dropped or kept by the emitter, the access is a plain one
LOADS = {"__ldg": "", "__ldcs": "cs", "__ldcg": "cg", "__ldca": "ca", "__ldlu": "lu", "__ldcv": "cv"}
STORES = {"__stcs": "cs", "__stcg": "cg", "__stwb": "wb", "__stwt": "wt"}

#: pure functions of two-element vectors applied to each element: CUDA name -> the scalar function
COMPONENTWISE = {
    "__hadd2": "__hadd",
    "__hsub2": "__hsub",
    "__hmul2": "__hmul",
    "__h2div": "__hdiv",
    "__hfma2": "__hfma",
    "__hmax2": "__hmax",
    "__hmin2": "__hmin",
    "__hneg2": "__hneg",
    "__habs2": "__habs",
    "h2exp": "hexp",
    "h2exp2": "hexp2",
    "h2log": "hlog",
    "h2sqrt": "hsqrt",
    "h2rsqrt": "hrsqrt",
    "h2rcp": "hrcp",
    "__hadd2_rn": "__hadd_rn",
    "__hmul2_rn": "__hmul_rn",
    "__hsub2_rn": "__hsub_rn",
    "h2tanh": "htanh",
    "h2floor": "hfloor",
    "h2ceil": "hceil",
    "h2trunc": "htrunc",
    "h2rint": "hrint",
    "h2log2": "hlog2",
    "h2log10": "hlog10",
    "h2sin": "hsin",
    "h2cos": "hcos",
    "h2tanh_approx": "htanh_approx",
}

_INDEX: dict[str, list[Row]] = {}
for _row in ROWS:
    _INDEX.setdefault(_row.cuda, []).append(_row)


def find(name: str, arg0: str) -> Row | None:
    """The row for a call of `name` whose first argument has scalar type `arg0` ('' when there is none)."""
    for row in _INDEX.get(name, ()):
        if not row.when or arg0 in row.when:
            return row
    return None


#: functions of porter.corpus.lib that patterns call and that only compute a value
_PURE_LIB = {
    "lib.linear_thread", "lib.block_threads", "lib.tile_mask", "lib.cluster_rank", "lib.cluster_blocks",
    "lib.cluster_position", "lib.cluster_extent", "lib.cluster_index", "lib.clusters", "lib.map_shared_rank",
}  # fmt: skip


def has_effect(name: str) -> bool:
    """True when a call of `name` must stay where it is."""
    if name == "porter.bits":
        return False
    if name.startswith("lib."):
        return name not in _PURE_LIB
    rows = _INDEX.get(name)
    if rows:
        return rows[0].effect
    return name in STORES or (name not in LOADS and name not in COMPONENTWISE and name not in PURE_EXTRA)


#: pure functions that are expanded by patterns rather than by a row
PURE_EXTRA = {
    "__half22float2",
    "__bfloat1622float2",
    "__float22half2_rn",
    "__float22bfloat162_rn",
    "__floats2half2_rn",
    "__floats2bfloat162_rn",
    "__float2half2_rn",
    "__float2bfloat162_rn",
    "__half2half2",
    "__bfloat162bfloat162",
    "__low2float",
    "__high2float",
    "__low2half",
    "__high2half",
    "__low2bfloat16",
    "__high2bfloat16",
    "__halves2half2",
    "__halves2bfloat162",
    "__lowhigh2highlow",
    "__low2half2",
    "__high2half2",
    "make_half2",
    "make_bfloat162",
}
