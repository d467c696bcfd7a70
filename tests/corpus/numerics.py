"""How ops are tried, and the comparison with a rounding reference and with float64.

The same cases run on a GPU and, smaller, in the emulator. Numbers stay on the device until a tally is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.corpus.inputs import E4M3, KINDS, Inputs

MANTISSA = {torch.bfloat16: 7, torch.float16: 10, torch.float32: 23}


def ulps(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Distance in units in the last place of two tensors of one float type, or of codes of a byte."""
    if a.dtype in (torch.int8, torch.uint8):
        return (a.int() - b.int()).abs()
    bits = {4: torch.int32, 2: torch.int16, 1: torch.int8}[a.element_size()]
    wide = torch.int64 if a.element_size() == 4 else torch.int32
    a, b = (t.contiguous().view(bits).to(wide) for t in (a, b))
    low = -(1 << (8 * bits.itemsize - 1))
    return (torch.where(a < 0, low - a, a) - torch.where(b < 0, low - b, b)).abs()


@dataclass(frozen=True)
class Exact:
    """What float64 arithmetic gives. `magnitude`: size of the operands of a difference or sum that may cancel; errors
    of 2^-23 of it, a unit in float32's last place, do not count. `slack`: what roundings of denormal numbers may move
    the value of a code by."""

    value: torch.Tensor
    magnitude: torch.Tensor | None = None
    slack: torch.Tensor | None = None

    def noise(self) -> Any:
        return 0.0 if self.magnitude is None else self.magnitude.abs() * 2.0**-23


@dataclass(frozen=True)
class Output:
    """One thing that an op writes. `arg`: which argument. `role`: "values"; "codes", compared where `scale` (the
    argument with their scales, None for a given one) agrees; "scale"."""

    arg: int
    role: str = "values"
    scale: int | None = None


@dataclass(frozen=True)
class Op:
    """How an op is tried. `make(inputs, tokens, length, variant)` gives its arguments; `exact(*arguments)` of the same
    gives {argument: Exact} from untouched ones.

    units: most units in the last place from the reference, of 16-bit results, of float32 results and of codes.
    equal: least share of 16-bit results and codes that are equal to the bit (of cases with 1000 and more).
    float64_units: most units from float64, of 16-bit and of float32 results.
    """

    name: str
    make: Callable[[Inputs, int, int, str], tuple[Any, ...]]
    lengths: tuple[int, ...]
    outputs: tuple[Output, ...] = (Output(0),)
    exact: Callable[..., dict[int, Exact]] | None = None
    variants: tuple[str, ...] = ("plain",)
    kinds: tuple[str, ...] = KINDS
    dtypes: tuple[torch.dtype, ...] = (torch.bfloat16, torch.float16, torch.float32)
    units: tuple[int, int] = (1, 16)
    equal: float = 0.999
    float64_units: tuple[float, float] = (0.52, 8.0)
    width: int = 1  # elements of a row for each of `length`

    @property
    def call(self) -> Any:
        from porter import corpus

        return getattr(corpus, self.name)


@dataclass
class Row:
    """What came of the cases of an op and dtype."""

    op: str
    dtype: str
    cases: int = 0
    outputs: int = 0
    unequal: int = 0
    most_units: int = 0
    most_units_from_float64: float = 0.0
    rms_over_reference: float | None = None  # error from float64: the kernel's over the reference's


_NAMES = ("touched", "wrong", "unequal", "most", "count", "unequal_scales", "scales", "worst64", "mine64", "theirs64")


@dataclass
class Tally:
    """Adds up the cases of one op and dtype. `check` looks at them all at once and fails for the first wrong one."""

    op: Op
    dtype: torch.dtype
    tried: int = 0
    labels: list[str] = field(default_factory=list)
    held: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[tuple[tuple[str, ...], torch.Tensor]] = field(default_factory=list)

    def try_case(self, run: Callable[..., Any], tokens: int, length: int, variant: str, kind: str, device: str) -> None:
        """Run the op, its reference and float64 on the same arguments. `run` says whether a kernel took them."""
        op, seed = self.op, tokens * 1000003 + length * 17 + self.tried
        made = [Inputs(seed, self.dtype, kind, device) for _ in range(3)]
        got, want, asis = (op.make(inputs, tokens, length, variant) for inputs in made)
        if not run(op.call, *got):
            return
        self.tried += 1
        op.call.op.fallback(*op.call.op.bind(want, {}))
        exact = op.exact(*asis) if op.exact is not None else {}
        written = {o.arg for o in op.outputs}
        label = f"{op.name} {self.dtype} {tokens}x{length} {variant} {kind}"
        for i, (a, b) in enumerate(zip(got, asis, strict=True)):
            if isinstance(a, torch.Tensor) and i not in written and not any(a is got[w] for w in written):
                self._add(f"{label}: argument {i} is read only", touched=_different_bits(a, b))
        for i, output in enumerate(op.outputs):
            touched = made[0].touched() if i == 0 else None
            if got[output.arg] is not None and got[output.arg].numel():
                self._compare(label, output, got, want, exact.get(output.arg), touched)

    def _compare(
        self, label: str, output: Output, got: Any, want: Any, exact: Exact | None, touched: Any
    ) -> None:  # fmt: skip
        a, b = got[output.arg], want[output.arg]
        if output.role == "e2m1":
            a, b = _steps(a), _steps(b)
        if output.role == "scale":
            # a norm that is rounded twice may be two units from the reference's, and with it the largest of a group
            unit = 2.0 ** (1 - MANTISSA[self.dtype])
            near = (a - b).abs() <= b.abs() * max(unit, 2.0**-20)
            wrong = ~(near | (a == b))
            counted = {"unequal_scales": (a != b).sum(), "scales": a.numel()}
            self._add(f"{label}: scale", touched=touched, wrong=wrong.sum(), **counted)
            return
        different = a.float().isnan() != b.float().isnan() if a.dtype.is_floating_point else torch.zeros_like(a).bool()
        distance = ulps(a, b).masked_fill(a.float().isnan() & b.float().isnan(), 0)
        unequal, units, count = distance != 0, distance, a.numel()
        if output.scale is not None:
            mine, theirs = got[output.scale], want[output.scale]
            assert mine.is_contiguous(), "scales of a case are contiguous rows"
            same = (mine == theirs) | ((mine - theirs).abs() <= theirs.abs() * 2.0**-20)
            groups = same.numel()
            spread = same.reshape(groups, 1).expand(groups, a.numel() // groups).reshape(a.shape)
            unequal, units, different = unequal & spread, units.masked_fill(~spread, 0), different & spread
            count = spread.sum()
        sums: dict[str, Any] = {}
        special = label.endswith(" special")
        if exact is not None and a.dtype in MANTISSA:
            noise = exact.noise()
            units = units.masked_fill((a.double() - b.double()).abs() <= noise, 0)
            if not special:  # with infinities, and where float32 overflows, the reference alone decides
                sums = dict(zip(("worst64", "mine64", "theirs64"), _from_float64(a, b, exact, noise), strict=True))
        elif exact is not None and not special:
            given = got[output.scale] if output.scale is not None else None
            different = different | _code_is_off(a, exact, given, self.dtype)
        if " denormal" not in label:  # numbers of few bits times one number are ties too often to count
            sums |= {"unequal": unequal.sum(), "count": count}
        self._add(label, touched=touched, wrong=different.sum(), most=units.max(), **sums)

    def _add(self, label: str, **numbers: Any) -> None:
        """Keep what is there; tensors are read when all cases are done."""
        kept = {n: v for n, v in numbers.items() if v is not None}
        self.labels.append(label)
        self.held.append({n: v for n, v in kept.items() if not isinstance(v, torch.Tensor)})
        waiting = {n: v.double() for n, v in kept.items() if isinstance(v, torch.Tensor)}
        self.waiting.append((tuple(waiting), torch.stack(list(waiting.values())) if waiting else torch.zeros(0)))

    def check(self) -> Row:
        """Everything added up; raises AssertionError with the first case that is wrong."""
        if not self.labels:
            return Row(self.op.name, name_of(self.dtype))
        device = next((v.device for _, v in self.waiting if len(v)), torch.device("cpu"))
        read = iter(torch.cat([v.to(device) for _, v in self.waiting]).tolist())
        for row, (names, _) in zip(self.held, self.waiting, strict=True):
            row |= {n: next(read) for n in names}
        column = {n: [float(row.get(n, 0)) for row in self.held] for n in _NAMES}
        wide = self.dtype == torch.float32 and any(o.role == "values" for o in self.op.outputs)
        units, far = self.op.units[wide], self.op.float64_units[wide]
        for label, touched, wrong, most, worst in zip(
            self.labels, *(column[n] for n in ("touched", "wrong", "most", "worst64")), strict=True
        ):
            assert touched == 0, f"{label}: {touched:.0f} bytes outside were written"
            assert wrong == 0, f"{label}: {wrong:.0f} are NaN in one only, or far off"
            assert most <= units, f"{label}: {most:.0f} units from the reference, {units} allowed"
            assert worst <= far, f"{label}: {worst:.3f} units from float64, {far} allowed"
        sums = {n: sum(c) for n, c in column.items()}
        if not wide and sums["count"] >= 1000:
            share = 1 - sums["unequal"] / sums["count"]
            assert share >= self.op.equal, f"{self.op.name} {self.dtype}: {share:.6f} are equal to the bit"
        if sums["scales"] >= 1000 and self.dtype != torch.float32:  # there the largest is rarely the same to the bit
            different = sums["unequal_scales"]
            assert different <= 0.01 * sums["scales"], f"{self.op.name} {self.dtype}: {different:.0f} scales differ"
        theirs = sums["theirs64"] ** 0.5
        ratio = sums["mine64"] ** 0.5 / theirs if theirs else None
        if ratio is not None and not wide:  # in float32 the bound in units decides
            assert ratio <= 1.05, f"{self.op.name} {self.dtype}: {ratio:.3f} times the reference's error from float64"
        return Row(
            self.op.name, name_of(self.dtype), self.tried, int(sums["count"]), int(sums["unequal"]),
            int(max(column["most"])), round(max(column["worst64"]), 4), None if ratio is None else round(ratio, 4),
        )  # fmt: skip


def _from_float64(got: torch.Tensor, want: torch.Tensor, exact: Exact, noise: Any) -> tuple[Any, Any, Any]:
    """(largest error in units in the last place, sums of the squares of such errors of got and of want)."""
    info = torch.finfo(got.dtype)
    value = exact.value.reshape(got.shape)
    fits = (value.abs() <= info.max) & want.isfinite()
    unit = 2.0 ** (value.abs().clamp_min(info.tiny).log2().floor() - MANTISSA[got.dtype])
    mine, theirs = (((t.double() - value).abs() - noise).clamp_min(0) / unit for t in (got, want))
    mine, theirs = (e.masked_fill(~fits, 0) for e in (mine, theirs))
    return mine.max(), mine.square().sum(), theirs.square().sum()


def _code_is_off(codes: torch.Tensor, exact: Exact, scale: Any, dtype: torch.dtype) -> torch.Tensor:
    """Where a code times its scale is further from float64's value than its rounding and those to `dtype` explain.
    Without `scale`, the value is in units of codes."""
    value = exact.value.reshape(codes.shape)
    size = torch.ones((), dtype=torch.float64, device=codes.device)
    if scale is not None:
        size = scale.double().reshape(-1, 1).expand(-1, codes.numel() // scale.numel()).reshape(codes.shape)
    before = value.abs() * 3 * 2.0 ** -MANTISSA[dtype] + 2.0**-16 * size  # two roundings and a scale's
    before = before if exact.slack is None else before + exact.slack
    most, least = (448.0, -448.0) if codes.dtype == E4M3 else (127.0, -128.0)
    value = torch.minimum(torch.maximum(value, least * size), most * size)
    own = value.abs() * 2.0**-4 + size * 2.0**-10 if codes.dtype == E4M3 else size * 0.5
    return ((codes.float().double() * size - value).abs() > own + before) & value.isfinite() & size.isfinite()


def _steps(codes: torch.Tensor) -> torch.Tensor:
    """Two e2m1 codes a byte as int8 in their order, those of the two zeros apart."""
    each = torch.stack([codes & 15, codes >> 4], -1).flatten(-2).to(torch.int8)
    return torch.where(each < 8, each + 1, 7 - each)


def _different_bits(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return (a.contiguous().view(words) != b.contiguous().view(words)).sum()


def name_of(dtype: torch.dtype) -> str:
    """"bfloat16"."""
    return str(dtype).removeprefix("torch.")


def cases(
    op: Op, length: int, tokens: tuple[int, ...], few: tuple[int, ...], most: int
) -> Iterator[tuple[int, str, str]]:
    """(tokens, variant, kind): the first variant with all `tokens`, the others with `few`; every kind with a few
    tokens and the first variant, one with millions of elements, else two; at most `most` elements."""
    for v, variant in enumerate(op.variants):
        for i, count in enumerate(tokens if v == 0 else few):
            elements = count * length * op.width
            if elements > most:
                continue
            kinds = op.kinds if count in few and v == 0 else (op.kinds[0], op.kinds[(1 + i + v) % len(op.kinds)])
            for kind in dict.fromkeys(kinds if elements < 1 << 22 or count in few else kinds[:1]):
                yield count, variant, kind
