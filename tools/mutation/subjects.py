"""The ports that mutants are made of: every reference kernel and those in tests/verify/mutation, ported afresh."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from porter.case.reader import Case
from porter.config import PortConfig
from porter.model import LineMapEntry, Status, Verdict
from porter.pipeline.inputs import choose_kernels, find_case, parse
from porter.pipeline.stages import Run, translate
from porter.verify.run import VerifyRequest, verify_port
from tools.mutation.classes import CLASSES, MutantClass
from tools.mutation.port_text import PortText

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "verify" / "mutation"
# Mutants that compute the same as the original on every input the case allows, and why: they are not counted. Named by
# the line as it was or as it is in the mutant, or by the line before and the line.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("moe_align_block_size", "off-by-one-guard", "count = counts[tid] if tid < num_experts else Int32(0)"):
        "thread num_experts reads a count inside the allocation that only threads behind it could use, and none does",
    ("moe_align_block_size", "floor-division",
     "for block in range(lib.c_div(start, block_size), lib.c_div(end, block_size)):"):
        "start is a sum of counts: never negative",
    ("per_tensor_fp8_quant", "nan-rule", "absmax = lib.fmax(absmax, warp_max[warp])"):
        "no partial maximum is NaN: each starts at zero and drops what is",
    ("topk_softmax_general", "missing-barrier",
     "choice[e] = p + lib.ldg(bias + e) if bias.toint() != 0 else p | cute.arch.sync_threads()"):
        "a thread's first round reads what it wrote itself; what others read is behind the barriers of the rounds",
    ("moe_dispatch", "unguarded-id", "return id if id < num_experts else Int32(-1)"):
        "without the lower bound: the callers treat every negative expert alike",
    ("moe_dispatch", "missing-barrier",
     "lib.copy(dst + Int64(v) * VEC, src + Int64(v) * VEC, VEC, readonly=True) | cute.arch.sync_threads()"):
        "the last barrier of the loop: what is shared is written and read with one of the other two in between",
}  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """One kernel with its true port."""

    name: str  # of the case file, without its suffixes
    text: str
    line_map: tuple[LineMapEntry, ...]
    request: VerifyRequest  # with a port path that has to be replaced
    case: Case


@dataclass(frozen=True)
class Mutant:
    subject: Subject
    kind: MutantClass
    number: int  # among the places of its class
    line: int
    before: str
    after: str
    text: str

    @property
    def key(self) -> str:
        return f"{self.subject.name}/{self.kind.name}/{self.number}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def sources() -> list[Path]:
    """The .cu files, by name."""
    found = [*(ROOT / "reference_kernels").rglob("*.cu"), *FIXTURES.glob("*.cu")]
    return sorted(found, key=lambda p: p.stem)


def subjects(names: set[str] | None = None) -> Iterator[Subject]:
    """The kernels with these names (all without names), each parsed and ported."""
    for path in sources():
        if names is not None and path.stem not in names:
            continue
        config = PortConfig(verify=False)
        unit = parse(path, config)
        for info in choose_kernels(unit, config):
            case = find_case(unit, info, config)
            made = translate(unit, info, case, config, Run(info.name))
            assert not made.module.holes, f"{info.name} has holes"
            request = VerifyRequest(
                Path("unset.py"), unit.source, info, case, ("sm_90a",), unit.options, unit, explain=False, jobs=1,
                line_map=made.module.line_map,
            )  # fmt: skip
            yield Subject(path.stem, made.module.text, made.module.line_map, request, case)


def mutants(subject: Subject, kinds: set[str] | None = None, every: bool = False) -> list[Mutant]:
    """The mutants of a port: of each class at most `most` places, spread over the text; `every`: all of them."""
    port = PortText(subject.text)
    found: list[Mutant] = []
    for kind in CLASSES.values():
        if kinds is not None and kind.name not in kinds:
            continue
        edits = list(kind.edits(port))
        for number in _spread(len(edits), len(edits) if every else kind.most, subject.name + kind.name):
            edit = edits[number]
            text = port.applied(edit)
            line = edit.node.lineno
            before, after = (t.splitlines()[line - 1].strip() for t in (subject.text, text))
            earlier = subject.text.splitlines()[line - 2].strip()
            places = {(subject.name, kind.name, p) for p in (before, after, f"{earlier} | {before}")}
            if not places & EQUIVALENT.keys():
                found.append(Mutant(subject, kind, number, line, before, after, text))
    return found


def _spread(count: int, most: int, label: str) -> list[int]:
    """`most` of `count` places: evenly apart, starting at one that the label draws."""
    if count <= most:
        return list(range(count))
    start = int(hashlib.sha256(label.encode()).hexdigest(), 16) % count
    return sorted((start + i * count // most) % count for i in range(most))


def fewer_instances(case: Case) -> tuple[int, ...]:
    """The numbers of the case's first instance, and of its last one where that has other constants."""
    first, last = case.instances[0], case.instances[-1]
    return (0,) if first.args[1:] == last.args[1:] else (0, len(case.instances) - 1)


def judge(subject: Subject, text: str, folder: Path, seed: int, **changes: object) -> list[Verdict]:
    """The verifier's answers about a port with this text."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{subject.name}.py"
    path.write_text(text, encoding="utf-8")
    return verify_port(replace(subject.request, port_path=path, seed=seed, **changes))  # type: ignore[arg-type]


def failing(verdicts: list[Verdict]) -> list[str]:
    return [v.check for v in verdicts if v.status is Status.FAIL]
