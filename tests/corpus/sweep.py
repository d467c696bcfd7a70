"""All ops of the corpus in the emulator, over lengths, dtypes, architectures and kinds of numbers.

`python -m tests.corpus.sweep [OP...]` writes sweep.json: for each op, dtype and architecture how many cases and
outputs there were, how many outputs are not equal to the bit to the reference that rounds as the kernel does, by how
many units in the last place at most, and how far they are from float64. About half an hour on one core.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from porter.corpus.runtime.ops import Unsupported
from tests.corpus.block_cases import BLOCKS
from tests.corpus.element_cases import ELEMENTS
from tests.corpus.emulated import run
from tests.corpus.norm_cases import NORMS
from tests.corpus.numerics import Op, Row, Tally, cases
from tests.corpus.quant_cases import QUANT

RESULT = Path(__file__).with_name("sweep.json")
OPS = (*NORMS, *ELEMENTS, *QUANT, *BLOCKS)
ARCHS = ("sm_90a", "sm_100a")
TOKENS = (1, 0, 3, 40)
FEW = (1,)  # with every kind of numbers, and in every variant
SMS = 8  # so that 40 rows are spread as many rows are
MOST = 1 << 16  # elements of a case


def emulated(arch: str) -> Any:
    """Runs an op in the emulator; False when no kernel takes the arguments."""

    def call(function: Any, *args: Any) -> bool:
        try:
            run(function, *args, arch=arch, sms=SMS)
        except Unsupported:
            return False
        return True

    return call


def whole(dtype: torch.dtype, arch: str) -> bool:
    """Whether every length is tried, and not every third: types and architectures differ in few instructions."""
    return dtype == torch.bfloat16 and arch == ARCHS[0]


def sweep(op: Op, dtype: torch.dtype, arch: str) -> Row:
    """One op, dtype and architecture; variants at some lengths. Raises AssertionError for what is wrong."""
    tally, go = Tally(op, dtype), emulated(arch)
    for i, length in enumerate(op.lengths if whole(dtype, arch) else op.lengths[::3]):
        tried = op if i % 5 == 1 else replace(op, variants=op.variants[:1])
        for tokens, variant, kind in cases(tried, length, TOKENS, FEW, MOST):
            tally.try_case(go, tokens, length, variant, kind, "cpu")
    return tally.check()


def read() -> list[dict[str, Any]]:
    return json.loads(RESULT.read_text())["rows"] if RESULT.is_file() else []


def key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["op"], row["dtype"], row["arch"]


def main(names: list[str]) -> int:
    failed: list[str] = []
    for op in OPS:
        if names and op.name not in names:
            continue
        for dtype in op.dtypes:
            for arch in ARCHS:
                try:
                    row = {"arch": arch, **asdict(sweep(op, dtype, arch))}
                except AssertionError as error:
                    failed.append(f"{arch}: {error}")
                    print(failed[-1], file=sys.stderr, flush=True)
                    continue
                print(row, file=sys.stderr, flush=True)
                rows = sorted([r for r in read() if key(r) != key(row)] + [row], key=key)
                text = ",\n  ".join(json.dumps(r) for r in rows)
                RESULT.write_text(f'{{\n "schema": 1,\n "device": "emulated",\n "rows": [\n  {text}\n ]\n}}\n')
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
