"""The functions of libdevice (libdevice.10.bc of CUDA 13): result, arguments and what they store through pointers.

A letter a type: f float, d double, i int, u unsigned int, l long long, U unsigned long long, v void.
"""

from __future__ import annotations

DTYPES = {"f": "Float32", "d": "Float64", "i": "Int32", "u": "Uint32", "l": "Int64", "U": "Uint64"}

_FLOAT = (  # of one float, with an f behind the name, and of one double
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "cospi", "cyl_bessel_i0",
    "cyl_bessel_i1", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp", "exp10", "exp2", "expm1", "fabs", "floor", "j0",
    "j1", "lgamma", "log", "log10", "log1p", "log2", "logb", "nearbyint", "normcdf", "normcdfinv", "rcbrt", "rint",
    "round", "rsqrt", "sin", "sinh", "sinpi", "sqrt", "tan", "tanh", "tgamma", "trunc", "y0", "y1",
)  # fmt: skip
_TWO = ("atan2", "copysign", "fdim", "fmax", "fmin", "fmod", "hypot", "nextafter", "pow", "remainder", "rhypot")
_MODES = ("rn", "rz", "rd", "ru")


def _signatures() -> dict[str, str]:
    found: dict[str, str] = {}
    for end, t in (("f", "f"), ("", "d")):
        found |= {name + end: f"{t} {t}" for name in _FLOAT}
        found |= {name + end: f"{t} {t}{t}" for name in _TWO}
        found |= {f"{name}3d{end}": f"{t} {t}{t}{t}" for name in ("norm", "rnorm")}
        found |= {f"{name}4d{end}": f"{t} {t}{t}{t}{t}" for name in ("norm", "rnorm")}
        found |= {f"fma{end}": f"{t} {t}{t}{t}", f"ilogb{end}": f"i {t}"}
        found |= {f"{name}{end}": f"l {t}" for name in ("llrint", "llround")}
        found |= {f"{name}{end}": f"{t} {t}i" for name in ("ldexp", "scalbn", "powi")}
        found |= {f"{name}{end}": f"{t} i{t}" for name in ("jn", "yn")}
        found |= {f"frexp{end}": f"{t} {t} i", f"modf{end}": f"{t} {t} {t}", f"remquo{end}": f"{t} {t}{t} i"}
        found |= {f"sincospi{end}": f"v {t} {t}{t}"}
    for r in _MODES:
        found |= {f"f{op}_{r}": "f ff" for op in ("add", "sub", "mul", "div")}
        found |= {f"d{op}_{r}": "d dd" for op in ("add", "sub", "mul", "div")}
        found |= {f"f{op}_{r}": "f f" for op in ("rcp", "sqrt")} | {f"d{op}_{r}": "d d" for op in ("rcp", "sqrt")}
        found |= {f"fmaf_{r}": "f fff", f"fma_{r}": "d ddd", f"double2float_{r}": "f d"}
        found |= {f"fmaf_ieee_{r}": "f fff"}
        for n, letter in (("int", "i"), ("uint", "u"), ("ll", "l"), ("ull", "U")):
            found |= {f"double2{n}_{r}": f"{letter} d", f"float2{n}_{r}": f"{letter} f", f"{n}2float_{r}": f"f {letter}"}
        found |= {f"ll2double_{r}": "d l", f"ull2double_{r}": "d U"}
    return found | {
        "int2double_rn": "d i", "uint2double_rn": "d u", "double2hiint": "i d", "double2loint": "i d",
        "hiloint2double": "d ii", "brevll": "U U", "mul64hi": "l ll", "umul64hi": "U UU", "hadd": "i ii",
        "rhadd": "i ii", "uhadd": "u uu", "urhadd": "u uu", "sad": "u iiu", "usad": "u uuu", "signbitf": "i f",
        "signbitd": "i d", "fast_tanf": "f f",
    }  # fmt: skip


SIGNATURES = _signatures()
