"""Buffers of symbols whose values the case, or the declaration, gives one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from porter import codes
from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.reader import Case
from porter.verify.launches.buffers import HostBuffer, init_word, storage


def fill_fixed(case: Case, buffer: HostBuffer, names: Mapping[str, Value]) -> None:
    """Write the values into a buffer, as many as it has elements. `names` are those of a point. Raises PorterError
    where one is no number of its type."""
    spec = buffer.spec
    if spec.values is not None:
        buffer.raw[:] = _words(case, spec.values, buffer.dtype, names, (*spec.where, "values"))
        return
    raw = buffer.raw.view(np.uint8)
    if spec.members:
        raw[:] = 0  # between members too
        layout = {m.path: m for m in spec.layout}
        for path, given in spec.members:
            member = layout[path]
            where = (*spec.where, "members")
            words = _words(case, given, member.dtype, names, where)
            raw[member.offset : member.offset + words.nbytes] = words.view(np.uint8)
        return
    if spec.image is None:
        raise RuntimeError(f"the original's declaration of {spec.symbol} has not been read")
    raw[:] = np.frombuffer(spec.image, np.uint8)


def _words(
    case: Case, given: Sequence[str], dtype: str, names: Mapping[str, Value], where: tuple[str, ...]
) -> np.ndarray:
    words = np.zeros(len(given), storage(dtype))
    for i, text in enumerate(given):
        try:
            value = expressions.evaluate(text, names)
        except ExprError as error:
            case.fail(codes.CASE_EXPRESSION, str(error), *where)
        if isinstance(value, str):
            case.fail(codes.CASE_EXPRESSION, f"`{text}` is a type, not a number", *where)
        if isinstance(value, float) and not value.is_integer() and dtype[0] in "iu":
            case.fail(codes.WRONG_VALUE, f"`{text}` gives {value!r}, and the elements are {dtype}", *where)
        words[i] = init_word(dtype, value)
    return words
