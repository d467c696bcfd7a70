"""The case of a kernel: `<name>.case.toml`, the contract a port is verified against. The agent may never change it.

```toml
schema = 1
kernel = "rms_norm_kernel"              # required
source = "rms_norm.cu"                  # default: the file beside it with the same stem
derived = "rms_norm.cu:71"              # porter derived the case, nobody has confirmed it: a port
                                        # that passes *agrees*. Delete the line when you have read the case

[[instances]]                           # template arguments; at least two for a template. Omit for a plain kernel.
args = ["__nv_bfloat16", 8]             # C++ text or numbers/bools, in order
when = "hidden % 8 == 0 and aligned(input, 16)"   # the torch-facing function takes the first whose `when` holds

[sizes]                                 # named sizes -> the values the verifier combines; at least one
tokens = [0, 1, 7, 33]
hidden = [64, 768, 4096]
# a derived size is an expression string: blocks = "ceil_div(tokens, 4)"
[[shapes]]                              # optional: extra/explicit points (all base sizes given); with
tokens = 3                              # `only_shapes = true` at top level, [sizes] is not combined
hidden = 12288
[[performance]]                         # optional: what `performance` times on a GPU (any base sizes; the others take
tokens = 4096                           # their first value); default: the largest points

[[buffers]]                             # one per pointer parameter of the kernel, by its name
name = "input"
dtype = "scalar_t"                      # a template type parameter's name, or
                                        # bf16 f16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64 e4m3 e5m2 e8m0 bool
shape = ["tokens", "hidden"]
strides = ["input_stride", 1]           # elements; default contiguous
role = "in"                             # in | out | inout | scratch (scratch: not compared)
dist = "normal"                         # see porter/verify/launches/inputs.py; default by dtype ("normal" for floats)
low = 0; high = "num_experts"           # for dist = "uniform"/"randint"
init = 0                                # value an out/scratch buffer is filled with before the launch (else: poisoned)
optional = false                        # true: verified with a null pointer too
compare = "close"                       # exact | close | sum | set-per-segment | none; default: close for floats,
                                        # exact for integers and quantised codes. sum: of floats, by atomics, in any
                                        # order; within 2 n u times the magnitudes of its n terms (u: one rounding)
compare_reason = ""                     # required when compare is none, sum or set-per-segment
segments = "offsets_buffer"             # for set-per-segment: a buffer of E+1 offsets into this one's rows, or of
                                        # E counts where this one is [E, capacity, ...]. Buffers with the same
                                        # segments are compared jointly: one permutation must fit all of them
nonfinite = true                        # false: the kernel's contract excludes inf and NaN in this input

[[symbols]]                             # one per __constant__ or __device__ variable that the kernel reaches and whose
name = "filters::taps"                  # values the host or an earlier launch decides. As the source names it; a static
                                        # local with its function: "scan::calls". It is a parameter of the port, "taps"
role = "in"                             # in; of a __device__ variable also out | inout, which are compared
dist = "normal"                         # with low and high as for a buffer; or
values = [0.5, "1 / n"]                 # every element in order: numbers or expressions; or
members = { scale = 0.5, taps = [1, 2] }  # every member of a struct that has members of several types; or
initial = "declared"                    # what the declaration says, where the host does not overwrite it
# dtype and shape are those of the declaration (half2 t[8] is f16 [8, 2], a struct of several types u8 of its size);
# compare, compare_reason and nonfinite are as for a buffer

[scalars]                               # every other kernel parameter: number, bool, or expression over sizes and
                                        # template arguments
epsilon = 1e-6
hidden_size = "hidden"
input_stride = "hidden"                 # a list gives variants: input_stride = ["hidden", "hidden + 8"]
vocab_start = { fixed = 32000 }         # a number that the whole case gives one value is tried with others as well,
                                        # where the original takes them; not with `fixed`

[launch]                                # expressions over sizes, scalars, template arguments
grid = ["tokens", 1, 1]
block = ["min(hidden // VEC, 1024)", 1, 1]
smem = 0                                # dynamic shared memory, bytes
cooperative = false
cluster = [1, 1, 1]

[reference]                             # optional float64 oracle
function = "rms_norm"                   # in porter/verify/numerics/references/, or "file.py:function" beside the case

[tolerance]                             # optional, per buffer; loosening needs a reason that the report shows
output = { ulp = 1, bit_equal = 0.999, rtol = 1e-6, reduction = "hidden", reason = "..." }
                                        # ulp of the output type, least share of bit-equal elements, float32 rounding
                                        # relative to the row; `reduction`: length of the longest sum, to derive from

[original]                              # optional: what the original itself is known to do wrong. Such accesses do not
violations = ["shared-race"]            # fail the sanitizer, in the port only where the original makes them too; the
reason = "..."                          # report shows the reason
```

Expressions are Python syntax over names, numbers, + - * // % ** comparisons and/or/not, `a if c else b`, and the
functions min max abs int sqrt ceil_div round_up next_pow2 sizeof(type) aligned(buffer, bytes) sm_count(). `/`
divides to a float; launch sizes need `//`. aligned() asks whether the buffer's address is a multiple of `bytes`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from porter import codes
from porter.case import expressions
from porter.case.expressions import ExprError
from porter.case.model import (
    BUFFER_KEYS,
    COMPARES,
    DISTRIBUTIONS,
    FLOAT_NAMES,
    LAUNCH_KEYS,
    ORIGINAL_KEYS,
    ROLES,
    SCHEMA,
    TOLERANCE_KEYS,
    TOP_KEYS,
    VIOLATIONS,
    BufferSpec,
    Case,
    CaseInstance,
    LaunchShape,
    LaunchSpec,
    Point,
    ToleranceSpec,
    contiguous,
    span_of,
)
from porter.case.symbols import read_symbols
from porter.case.toml_lines import diagnostic_at, parsed_toml, suggestion
from porter.cxx.types import scalar_name
from porter.model import Diagnostic, PorterError
from porter.plain_files import is_plain, read_plain_text
from porter.source import Span
from porter.wording import plural

__all__ = [
    "BufferSpec", "Case", "CaseInstance", "LaunchShape", "LaunchSpec", "Point", "ToleranceSpec", "case_path_for",
    "contiguous", "load_case", "parse_case", "span_of",
]  # fmt: skip


def case_path_for(source_path: str | Path, kernel: str) -> Path | None:
    """The case of a kernel beside its source: `<stem>.<kernel>.case.toml`, else `<stem>.case.toml`; None: neither."""
    source = Path(source_path)
    for name in (f"{source.stem}.{kernel}.case.toml", f"{source.stem}.case.toml"):
        if is_plain(source.parent / name):
            return source.parent / name
    return None


def load_case(path: str | Path) -> Case:
    """Read and check a case file; every error is a PorterError with code PRT90x that names file, line and key."""
    p = Path(path)
    try:
        text = read_plain_text(p)
    except FileNotFoundError:
        raise PorterError(Diagnostic(codes.UNREADABLE_CASE, f"no case file {p}", Span(str(p), 0))) from None
    except (OSError, UnicodeDecodeError) as error:
        message = f"case file {p} cannot be read: {error}"
        raise PorterError(Diagnostic(codes.UNREADABLE_CASE, message, Span(str(p), 0))) from None
    return parse_case(text, p)


def parse_case(text: str, path: Path) -> Case:
    """A case from TOML text; `path` names it in messages and is what `source` is relative to."""
    try:
        data = parsed_toml(text)
    except tomllib.TOMLDecodeError as error:
        line = getattr(error, "lineno", None) or _line_of(str(error))
        raise PorterError(Diagnostic(codes.UNREADABLE_CASE, f"not TOML: {error}", Span(str(path), line))) from None
    return _Reader(text, path).case(data)


def _line_of(message: str) -> int:
    words = message.replace(",", " ").replace(")", " ").split()
    return int(words[words.index("line") + 1]) if "line" in words else 1


_TOML_TYPES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", list: "a list",
               dict: "a table"}  # fmt: skip


MOST_VALUES = 10_000  # of one size, or one scalar
MOST_SIZE = 1 << 40
MOST_DIMENSIONS = 32
MOST_OF_AN_EXPRESSION = 4096


def shown(value: Any) -> str:
    """A value of the file for a message: not all of a large one."""
    if isinstance(value, int) and value.bit_length() > 1024:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class _Reader:
    """Turns parsed TOML into a Case, or raises at the key that is wrong."""

    def __init__(self, text: str, path: Path):
        self.text, self.path = text, path

    def fail(self, code: str, message: str, *where: str, help: str = "") -> NoReturn:
        raise PorterError(diagnostic_at(self.path, self.text, code, message, where, help))

    def known(self, table: Mapping[str, Any], keys: Iterable[str], *where: str) -> None:
        names = tuple(keys)
        for key in table:
            if key not in names:
                self.fail(codes.UNKNOWN_KEY, f"unknown key `{key}`", *where, key, help=suggestion(key, names))

    def typed(self, table: Mapping[str, Any], key: str, kind: Any, default: Any, *where: str) -> Any:
        """table[key], which must be of the type (or one of the types) `kind`."""
        if key not in table:
            return default
        value = table[key]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join(_TOML_TYPES[k] for k in kinds)
            self.fail(codes.WRONG_VALUE, f"must be {names}, not {shown(value)}", *where, key)
        return value

    def path_of(self, value: str, *where: str) -> str:
        if "\0" in value:
            self.fail(codes.WRONG_VALUE, "a path cannot contain a NUL character", *where)
        return value

    def expression(self, value: Any, *where: str) -> str:
        if isinstance(value, int) and value.bit_length() > expressions.MAX_BITS:
            self.fail(codes.WRONG_VALUE, f"a number of more than {expressions.MAX_BITS} bits", *where)
        if isinstance(value, bool | int | float):
            return str(value)
        if not isinstance(value, str):
            self.fail(codes.WRONG_VALUE, f"must be a number or an expression, not {shown(value)}", *where)
        if len(value) > MOST_OF_AN_EXPRESSION:
            self.fail(codes.CASE_EXPRESSION, f"an expression of more than {MOST_OF_AN_EXPRESSION} characters", *where)
        try:
            if not expressions.names_in(value) and not expressions.uses_aligned(value):
                expressions.evaluate(value, {})  # what has one value everywhere is computed now, not by the port
        except ExprError as error:
            self.fail(codes.CASE_EXPRESSION, str(error), *where)
        return value

    def one_of(self, value: str, allowed: tuple[str, ...], *where: str) -> str:
        if value not in allowed:
            help = suggestion(value, allowed)
            self.fail(codes.WRONG_VALUE, f"`{value}` is not one of {', '.join(allowed)}", *where, help=help)
        return value

    # ---- tables

    def case(self, data: dict[str, Any]) -> Case:
        self.known(data, TOP_KEYS)
        schema = self.typed(data, "schema", int, SCHEMA)
        if schema != SCHEMA:
            self.fail(codes.WRONG_VALUE, f"this porter reads schema {SCHEMA}, not {schema}", "schema")
        kernel = self.typed(data, "kernel", str, "")
        if not kernel:
            self.fail(codes.MISSING_KEY, "the key `kernel` is missing: the name of the __global__ function")
        for key in ("sizes", "buffers", "launch"):
            if key not in data:
                self.fail(
                    codes.MISSING_KEY,
                    f"the table [{key}] is missing" if key != "buffers" else "no [[buffers]] are given",
                )
        sizes = self.sizes(self.typed(data, "sizes", dict, {}))
        buffers = tuple(self.buffer(b, i) for i, b in enumerate(self.typed(data, "buffers", list, [])))
        scalars, fixed_scalars = self.scalars(self.typed(data, "scalars", dict, {}))
        taken = [*(b.name for b in buffers), *(n for n, _ in scalars)]
        buffers += read_symbols(self, self.typed(data, "symbols", list, []), taken)
        shapes, timed = (
            tuple(self.shape(s, key, i, sizes) for i, s in enumerate(self.typed(data, key, list, [])))
            for key in ("shapes", "performance")
        )
        known, known_reason = self.original(self.typed(data, "original", dict, {}))
        case = Case(
            path=self.path,
            kernel=kernel,
            source=self.path_of(self.typed(data, "source", str, self.path.name.split(".")[0] + ".cu"), "source"),
            instances=tuple(self.instance(x, i) for i, x in enumerate(self.typed(data, "instances", list, [])))
            or (CaseInstance(()),),
            sizes=sizes,
            buffers=buffers,
            scalars=scalars,
            launch=self.launch(self.typed(data, "launch", dict, {})),
            shapes=shapes,
            performance=timed,
            only_shapes=self.typed(data, "only_shapes", bool, False),
            reference=self.reference(self.typed(data, "reference", dict, {})),
            tolerance=self.tolerance(self.typed(data, "tolerance", dict, {}), buffers),
            fixed_scalars=fixed_scalars,
            known_violations=known,
            known_reason=known_reason,
            derived=self.typed(data, "derived", str, ""),
            text=self.text,
        )
        self.cross_check(case)
        return case

    def instance(self, value: Any, i: int) -> CaseInstance:
        where = ("instances", str(i))
        if not isinstance(value, dict):
            self.fail(codes.WRONG_VALUE, "write [[instances]] tables with `args`", *where)
        self.known(value, ("args", "when"), *where)
        if "args" not in value:
            self.fail(codes.MISSING_KEY, "the key `args` is missing", *where)
        args = []
        for a in self.typed(value, "args", list, [], *where):
            if not isinstance(a, str | int | bool):
                given = shown(a)
                self.fail(
                    codes.WRONG_VALUE,
                    f"a template argument is C++ text, a number or a bool, not {given}",
                    *where,
                    "args",
                )
            if isinstance(a, int) and a.bit_length() > expressions.MAX_BITS:
                self.fail(codes.WRONG_VALUE, f"a number of more than {expressions.MAX_BITS} bits", *where, "args")
            args.append(str(a).lower() if isinstance(a, bool) else str(a))
        when = self.typed(value, "when", str, "", *where)
        return CaseInstance(tuple(args), self.expression(when, *where, "when") if when else "")

    def sizes(self, table: dict[str, Any]) -> tuple[tuple[str, tuple[int, ...] | str], ...]:
        if not table:
            self.fail(codes.MISSING_KEY, "[sizes] names no size", "sizes")
        found: list[tuple[str, tuple[int, ...] | str]] = []
        for name, value in table.items():
            if isinstance(value, str):
                found.append((name, self.expression(value, "sizes", name)))
                continue
            values = value if isinstance(value, list) else [value]
            if not values:
                self.fail(codes.WRONG_VALUE, "an empty list gives no shape to verify", "sizes", name)
            if len(values) > MOST_VALUES:
                self.fail(codes.WRONG_VALUE, f"more than {MOST_VALUES} values", "sizes", name)
            for v in values:
                if isinstance(v, bool) or not isinstance(v, int) or v < 0:
                    text = f"a size is a whole number >= 0 or an expression, not {shown(v)}"
                    self.fail(codes.WRONG_VALUE, text, "sizes", name)
                if v > MOST_SIZE:
                    self.fail(codes.WRONG_VALUE, f"a size is at most 2^40, not {shown(v)}", "sizes", name)
            found.append((name, tuple(dict.fromkeys(values))))
        return tuple(found)

    def shape(
        self, value: Any, key: str, i: int, sizes: tuple[tuple[str, tuple[int, ...] | str], ...]
    ) -> dict[str, int]:
        where = (key, str(i))
        base = [n for n, v in sizes if not isinstance(v, str)]
        if not isinstance(value, dict):
            self.fail(codes.WRONG_VALUE, f"write [[{key}]] tables of sizes", *where)
        self.known(value, base, *where)
        for name in base:
            if name not in value:
                if key == "performance":
                    continue
                self.fail(codes.MISSING_KEY, f"the size `{name}` is missing", *where)
            v = value[name]
            if isinstance(v, bool) or not isinstance(v, int) or not 0 <= v <= MOST_SIZE:
                self.fail(codes.WRONG_VALUE, f"a size is a whole number from 0 to 2^40, not {shown(v)}", *where, name)
        return dict(value)

    def buffer(self, value: Any, i: int) -> BufferSpec:
        if not isinstance(value, dict):
            self.fail(codes.WRONG_VALUE, "write [[buffers]] tables", "buffers", str(i))
        where = ("buffers", str(value.get("name", i)))
        self.known(value, BUFFER_KEYS, *where)
        for key in ("name", "dtype", "shape"):
            if key not in value:
                self.fail(codes.MISSING_KEY, f"the key `{key}` is missing", *where)
        shape = tuple(self.expression(e, *where, "shape") for e in self.typed(value, "shape", list, [], *where))
        if len(shape) > MOST_DIMENSIONS:
            self.fail(
                codes.WRONG_VALUE, f"{plural(len(shape), 'dimension')}, of at most {MOST_DIMENSIONS}", *where, "shape"
            )
        strides = None
        if "strides" in value:
            given = self.typed(value, "strides", list, [], *where)
            strides = tuple(self.expression(e, *where, "strides") for e in given)
            if len(strides) != len(shape):
                text = f"{plural(len(strides), 'stride')} for {plural(len(shape), 'dimension')}"
                self.fail(codes.WRONG_VALUE, text, *where, "strides")
        role = self.one_of(self.typed(value, "role", str, "in", *where), ROLES, *where, "role")
        compare = self.typed(value, "compare", str, "", *where)
        if compare:
            self.one_of(compare, COMPARES, *where, "compare")
        reason = self.typed(value, "compare_reason", str, "", *where)
        if compare in ("none", "sum", "set-per-segment") and not reason.strip():
            self.fail(codes.MISSING_KEY, f'compare = "{compare}" needs a `compare_reason`', *where, "compare")
        segments = self.typed(value, "segments", str, "", *where)
        if compare == "set-per-segment" and not segments:
            self.fail(
                codes.MISSING_KEY,
                "set-per-segment needs `segments`, the buffer of offsets or counts",
                *where,
                "compare",
            )
        dist = self.typed(value, "dist", str, "", *where)
        if dist:
            self.one_of(dist, DISTRIBUTIONS, *where, "dist")
        init = self.typed(value, "init", (int, float), None, *where)
        if init is not None and role in ("in", "inout"):
            self.fail(codes.WRONG_VALUE, f"`init` is for out and scratch buffers; this one is {role}", *where, "init")

        def bound(key: str) -> str | None:
            return self.expression(value[key], *where, key) if key in value else None

        return BufferSpec(
            self.typed(value, "name", str, "", *where), self.typed(value, "dtype", str, "", *where), shape, strides,
            role, dist, bound("low"), bound("high"), init, self.typed(value, "optional", bool, False, *where), compare,
            reason, segments, self.typed(value, "nonfinite", bool, True, *where),
            line=diagnostic_at(self.path, self.text, "", "", where).span.line,
        )  # fmt: skip

    def scalars(self, table: dict[str, Any]) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], frozenset[str]]:
        """Each scalar's expressions, and the names of those that are `{ fixed = ... }`."""
        found, fixed = [], set()
        for name, value in table.items():
            if isinstance(value, dict):
                self.known(value, ("fixed",), "scalars", name)
                if "fixed" not in value:
                    self.fail(
                        codes.MISSING_KEY, "write a value, a list of values, or { fixed = value }", "scalars", name
                    )
                value = value["fixed"]
                fixed.add(name)
            values = value if isinstance(value, list) else [value]
            if not values:
                self.fail(codes.WRONG_VALUE, "an empty list gives no value", "scalars", name)
            if len(values) > MOST_VALUES:
                self.fail(codes.WRONG_VALUE, f"more than {MOST_VALUES} values", "scalars", name)
            found.append((name, tuple(self.expression(v, "scalars", name) for v in values)))
        return tuple(found), frozenset(fixed)

    def launch(self, table: dict[str, Any]) -> LaunchSpec:
        self.known(table, LAUNCH_KEYS, "launch")

        def dims(key: str) -> tuple[str, str, str]:
            value = table.get(key, 1)
            values = value if isinstance(value, list) else [value]
            if not 1 <= len(values) <= 3:
                self.fail(codes.WRONG_VALUE, "one to three dimensions", "launch", key)
            texts = [self.expression(v, "launch", key) for v in values]
            return tuple(texts + ["1"] * (3 - len(texts)))  # type: ignore[return-value]

        for key in ("grid", "block"):
            if key not in table:
                self.fail(codes.MISSING_KEY, f"the key `{key}` is missing", "launch")
        smem = self.expression(table.get("smem", 0), "launch", "smem")
        return LaunchSpec(
            dims("grid"), dims("block"), smem, self.typed(table, "cooperative", bool, False, "launch"), dims("cluster")
        )

    def reference(self, table: dict[str, Any]) -> str:
        self.known(table, ("function",), "reference")
        return self.path_of(self.typed(table, "function", str, "", "reference"), "reference", "function")

    def original(self, table: dict[str, Any]) -> tuple[tuple[str, ...], str]:
        self.known(table, ORIGINAL_KEYS, "original")
        kinds = self.typed(table, "violations", list, [], "original")
        for kind in kinds:
            self.one_of(str(kind), VIOLATIONS, "original", "violations")
        reason = self.typed(table, "reason", str, "", "original")
        if kinds and not reason.strip():
            self.fail(codes.MISSING_KEY, "`violations` need a `reason`", "original", "violations")
        return tuple(kinds), reason

    def tolerance(
        self, table: dict[str, Any], buffers: tuple[BufferSpec, ...]
    ) -> tuple[tuple[str, ToleranceSpec], ...]:
        names = [b.name for b in buffers]
        found = []
        self.known(table, names, "tolerance")
        for name in table:
            row = self.typed(table, name, dict, {}, "tolerance")
            where = ("tolerance", name)
            self.known(row, TOLERANCE_KEYS, *where)
            number = (int, float)
            reduction = self.expression(row["reduction"], *where, "reduction") if "reduction" in row else None
            spec = ToleranceSpec(
                self.typed(row, "ulp", number, None, *where), self.typed(row, "bit_equal", number, None, *where),
                self.typed(row, "rtol", number, None, *where), reduction, self.typed(row, "reason", str, "", *where),
            )  # fmt: skip
            for key in ("ulp", "bit_equal", "rtol"):
                v = getattr(spec, key)
                if v is not None and not (0 <= v < float("inf")):
                    self.fail(codes.WRONG_VALUE, f"must be finite and not negative, not {v}", *where, key)
            found.append((name, spec))
        return tuple(found)

    def cross_check(self, case: Case) -> None:
        names = [b.name for b in case.buffers]
        for name in names:
            if names.count(name) > 1:
                self.fail(codes.WRONG_VALUE, f"two buffers are called `{name}`", *case.buffer(name).where)
        for b in case.buffers:
            if b.segments and b.segments not in names:
                self.fail(codes.WRONG_VALUE, f"no buffer `{b.segments}`", "buffers", b.name, "segments",
                          help=suggestion(b.segments, names))  # fmt: skip
            if b.init is not None and isinstance(b.init, float) and scalar_name(b.dtype) not in (*FLOAT_NAMES, None):
                self.fail(codes.WRONG_VALUE, f"`{b.init}` does not fit a {b.dtype}", "buffers", b.name, "init")
        if not any(b.is_compared for b in case.buffers):
            self.fail(
                codes.WRONG_VALUE, "no buffer is an output that is compared: nothing would be verified", "buffers"
            )
        if case.only_shapes and not case.shapes:
            self.fail(codes.MISSING_KEY, "only_shapes = true, but no [[shapes]] are given", "only_shapes")
