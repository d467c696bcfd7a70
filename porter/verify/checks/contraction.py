"""What ptxas may fuse in one side and not in the other: launches executed once more as ptxas would fuse them.

The emulator executes PTX's `mul` and `add` one by one, hardware executes what ptxas made of them. So each side is also
run with every product fused that ptxas may fuse (emulator/decode/contraction.py), and each result of one side has to
be, element by element and within the tolerance, one of the results that the other side may have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from porter import codes
from porter.case.reader import LaunchShape
from porter.verify import emulator as ptx
from porter.verify.backends.interface import Backend, Build
from porter.verify.emulator.decode import contraction
from porter.verify.execute import InstanceUnderTest, TrialResult, copies, reference_values
from porter.verify.launches.buffers import Buffers, HostBuffer
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.trials import Trial
from porter.verify.numerics.comparison import Finding, compare_output, numbers
from porter.verify.numerics.segments import groups

ALIKE = 2  # launches an instance that are run again where both sides have the same sums to fuse


@lru_cache(maxsize=64)
def fusible(build: Build) -> Counter[str]:
    """The sums of a kernel that ptxas may fuse, by opcode; none when the PTX cannot be read."""
    from porter.verify.backends.emulator import module_of

    try:
        return contraction.fusible(module_of(build.ptx), build.entry)
    except ptx.PtxError:
        return Counter()


#: largest relative rounding error of a product, by the type of its sum
_ROUNDING = {"f16": 2.0**-11, "f16x2": 2.0**-11, "bf16": 2.0**-8, "bf16x2": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}


def choice_of_products(original: Build, port: Build) -> float:
    """What ptxas's choice may change on a GPU, relative to a product: both sides have sums of two plain products.

    ptxas fuses one product and rounds the other, and equal PTX in another order is fused the other way round. 0.0 where
    no sum has two, or where the sides do not offer the same choices.
    """
    sides = fusible(original), fusible(port)
    if sides[0] != sides[1]:
        return 0.0
    kinds = [opcode.removesuffix(" of two").split(".")[-1] for opcode in sides[0] if opcode.endswith(" of two")]
    return max((2.0 * _ROUNDING.get(kind, 0.0) for kind in kinds), default=0.0)


def check(
    subject: InstanceUnderTest,
    results: Sequence[TrialResult],
    shapes: Sequence[tuple[LaunchShape, LaunchShape]],
    backend: Backend,
) -> None:
    """Fill in `contraction` of the results of one instance. Only the emulator is asked: a GPU has fused already."""
    if not hasattr(backend, "fuses"):
        return
    sides = fusible(subject.original), fusible(subject.port)
    if not sides[0] and not sides[1]:
        return
    ready = [(r, s) for r, s in zip(results, shapes, strict=False) if r.comparisons and not r.trial.far]
    if sides[0] == sides[1]:
        ready = sorted(ready, key=lambda pair: pair[0].trial.point.elements)[:ALIKE]
    for result, pair in ready:
        result.contraction = _findings(subject, result, pair, backend)
        if result.contraction:
            return  # one launch tells as much as all


def _findings(
    subject: InstanceUnderTest, result: TrialResult, shapes: tuple[LaunchShape, LaunchShape], backend: Backend
) -> list[Finding]:
    trial = result.trial
    before = make_inputs(subject.case, trial.point, subject.values, trial.scenario, trial.seed, trial.misaligned)
    originals = _runs(subject, subject.original, shapes[0], trial, before, backend)
    ports = _runs(subject, subject.port, shapes[1], trial, before, backend)
    truth, _ = reference_values(subject, trial, before)
    present = {n: b for n, b in before.items() if n not in trial.point.null}
    unordered = {b.name for members in groups(present).values() for b in members}
    found = []
    for name, tolerance in result.tolerances.items():
        if name in unordered:
            continue
        theirs = {way: buffers[name] for way, buffers in originals.items()}
        mine = {way: buffers[name] for way, buffers in ports.items()}
        for who, one, other in (("port", mine, theirs), ("original", theirs, mine)):
            for way in one:
                if not way:
                    continue
                near = nearest(one[way], list(other.values()))
                words = (near, one[way].view()) if who == "port" else (one[way].view(), near)
                compared = compare_output(
                    before[name], theirs[""], mine[""], tolerance, truth.get(name), truth.get(f"{name}:pre"), words
                )
                bad = [f for f in compared.findings if f.is_port]
                if bad:
                    found.append(_finding(subject, bad[0], who))
                    break
    return found


def _runs(
    subject: InstanceUnderTest, build: Build, shape: LaunchShape, trial: Trial, before: Buffers, backend: Backend
) -> dict[str, Buffers]:
    """What a launch leaves, by the way in which its sums are fused ("" for none)."""
    counts = fusible(build)
    choice = any(opcode.endswith(" of two") for opcode in counts)
    ways: list[contraction.Fused] = ["", *(contraction.WAYS if choice else contraction.WAYS[: bool(counts)])]
    found: dict[str, Buffers] = {}
    for way in ways:
        buffers = copies(before)
        is_port = build is subject.port
        done = subject.launch(backend, trial, shape, buffers, port=is_port, checks=False, fused=way)
        if not done.error:
            found[way] = buffers
    return found


def nearest(of: HostBuffer, among: Sequence[HostBuffer]) -> np.ndarray:
    """For each element the words of that buffer whose element is nearest: the same bits where one has them."""
    target, dtype = of.view(), of.dtype
    value = numbers(target, dtype)
    best = among[0].view().copy()
    with np.errstate(invalid="ignore", over="ignore"):

        def distance(words: np.ndarray) -> np.ndarray:
            other = numbers(words, dtype)
            gap = np.where(np.isnan(value) & np.isnan(other), 0.0, np.abs(other - value))
            gap = np.where(other == value, 0.0, gap)  # infinities
            return np.where(words == target, -1.0, np.where(np.isnan(gap), np.inf, gap))

        least = distance(best)
        for buffer in among[1:]:
            words = buffer.view()
            gap = distance(words)
            closer = gap < least
            best[closer], least = words[closer], np.minimum(gap, least)
    return best


def _finding(subject: InstanceUnderTest, bad: Finding, who: str) -> Finding:
    build, other = (subject.port, subject.original) if who == "port" else (subject.original, subject.port)
    counts, theirs = fusible(build), fusible(other)
    more = {k: n for k, n in counts.items() if n > theirs[k]} or dict(counts)
    what = ", ".join(f"{n} `{k}`" for k, n in sorted(more.items()))
    rest = "the port" if who == "original" else "the original"
    text = f"ptxas may fuse products into sums of the {who} ({what}) where {rest} gives it no such choice. Fused, "
    return replace(bad, code=codes.CONTRACTION, message=text + bad.message + evidence(subject))


def evidence(subject: InstanceUnderTest) -> str:
    """What ptxas made of both sides, in a sentence; "" where nothing can be disassembled."""
    counts = [machine_counts(b) for b in (subject.original, subject.port)]
    if not all(counts):
        return ""
    sides = [", ".join(f"{n} {k}" for k, n in sorted(c.items())) for c in counts]
    return f". Machine code: the original has {sides[0]}; the port {sides[1]}"


_ARITHMETIC = re.compile(r"^(?:@!?U?P\w+\s+)?([FDH])(ADD|MUL|FMA)2?\b")


def machine_counts(build: Build) -> Mapping[str, int]:
    """How many multiplications, additions and fused ones a kernel's cubin has, by nvdisasm; {} without either."""
    from porter.verify.compile.nvdisasm import disassemble, find_nvdisasm

    if not build.cubin or find_nvdisasm() is None:
        return {}
    try:
        lines = disassemble(build.cubin, build.entry)
    except RuntimeError:
        return {}
    found = Counter(f"{m[1]}{m[2]}" for line in lines if (m := _ARITHMETIC.match(line.text)))
    return {k + ("2" if k[0] == "H" else ""): n for k, n in found.items()}
