"""Runs the cases of an op on a GPU, over the whole grid of tokens and kinds of numbers."""

from __future__ import annotations

import gc
import time
from typing import Any

import torch

from porter.corpus.runtime.device import device_of
from porter.corpus.runtime.ops import Unsupported
from tests.corpus.inputs import Inputs
from tests.corpus.numerics import Op, Row, Tally, cases, name_of

TOKENS = (0, 1, 2, 3, 7, 16, 31, 64, 127, 128, 129, 256, 1024, 4096, 8192)
FEW = (1, 7, 129)  # with every kind of numbers, and in every variant
MOST = 1 << 27  # elements of a case: in float64 they take a gigabyte a tensor


def grid(ops: tuple[Op, ...]) -> list[tuple[Op, torch.dtype, int]]:
    return [(op, dtype, length) for op in ops for dtype in op.dtypes for length in op.lengths]


def label(value: Any) -> str | None:
    """An id of a test's parameter."""
    return value.name if isinstance(value, Op) else name_of(value) if isinstance(value, torch.dtype) else None


def call(function: Any, *args: Any) -> bool:
    """Call an op; False when no kernel takes the arguments."""
    op = function.op
    try:
        op.plan(device_of(next(a for a in args if isinstance(a, torch.Tensor))), *op.bind(args, {}))
    except Unsupported:
        return False
    function(*args)
    return True


def repeat(op: Op, times: int = 20) -> None:
    """The same arguments give the same bits every time, whatever the variant."""
    for variant in op.variants:
        first: list[torch.Tensor] = []
        for _ in range(times):
            args = op.make(Inputs(11, torch.bfloat16, "normal", "cuda"), 129, op.lengths[1], variant)
            call(op.call, *args)
            written = [args[o.arg].clone() for o in op.outputs if args[o.arg] is not None]
            first = first or written
            for a, b in zip(first, written, strict=True):
                assert torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)), variant


def sweep(op: Op, dtype: torch.dtype, length: int) -> Row:
    """All cases of an op, a dtype and a length of rows. Raises AssertionError for the first that is wrong."""
    tally = Tally(op, dtype)
    for tokens, variant, kind in cases(op, length, TOKENS, FEW, MOST):
        for attempt in range(6):
            try:
                tally.try_case(call, tokens, length, variant, kind, "cuda")
                break
            except torch.cuda.OutOfMemoryError:  # other parts of the tests run beside this one
                if attempt == 5:
                    raise
            gc.collect()
            torch.cuda.empty_cache()
            time.sleep(2)
    row = tally.check()
    torch.cuda.empty_cache()
    return row
