"""Calls of ops as data: tensors as text, for ahead-of-time builds, warm-up and tuning."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from porter.corpus.runtime.ops import OPS

_TENSOR = re.compile(r"(\w+)\[([^\[\]:]*)(?::([^\[\]:]*))?\](?:<(\d+))?")
_SIZE = re.compile(r"(?:up\((\d+(?:\*\d+)*),(\d+)\)|(\d+(?:\*\d+)*))(?:\+(\d+))?")


def tensor(text: str, device: Any = "meta") -> Any:
    """A tensor from its description: dtype, shape, strides where it is not contiguous; without memory by default.

    "bf16[8,4096]", "bf16[8,4096:12288,1]", "f32[1]", "i64[8]<512". A size may be a product ("8*2") or `up(8*2,128)`,
    rounded up to a multiple, plus a number. With memory, numbers are random: those of integers below what stands after
    `<` (or zero), one float32 alone is 0.02. Raises ValueError for other texts.
    """
    import torch

    from porter.corpus.runtime.dtypes import torch_type

    found = _TENSOR.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} does not describe a tensor; write dtype[shape] or dtype[shape:strides]")
    shape, strides = (None if part is None else _sizes(part, text) for part in found.groups()[1:3])
    assert shape is not None
    dtype = torch_type(found[1])
    if strides is None:
        made = torch.empty(shape, dtype=dtype, device=device)
    else:
        made = torch.empty_strided(shape, strides, dtype=dtype, device=device)
    if made.is_meta:
        return made
    if dtype.is_floating_point and dtype.itemsize > 1:
        return made.fill_(0.02) if found[1] == "f32" and made.numel() == 1 else made.normal_()
    if found[4] is not None:
        return made.random_(0, int(found[4]))
    made.view(torch.uint8).zero_() if made.element_size() == 1 else made.zero_()
    return made


def _sizes(part: str, text: str) -> list[int]:
    sizes = []
    for each in filter(None, re.split(r",(?![^(]*\))", part.replace(" ", ""))):
        size = _SIZE.fullmatch(each)
        if size is None:
            raise ValueError(f"{text!r} does not describe a tensor: {each!r} is not a size")
        rounded, multiple, plain, more = size.groups()
        count = math.prod(int(n) for n in (rounded or plain).split("*"))
        step = int(multiple or 1)
        sizes.append(-(-count // step) * step + int(more or 0))
    return sizes


def arguments(configuration: Mapping[str, Any], tokens: int, device: Any = "meta") -> tuple[Any, ...]:
    """All arguments of a configuration {"op": name, "args": {...}} by position, "T" in a tensor's text as `tokens`.

    Raises ValueError for an op that there is not, or arguments that it does not have.
    """
    import porter.corpus.ops  # noqa: F401 (declares them)

    name = configuration.get("op")
    if name not in OPS:
        raise ValueError(f"there is no op {name!r}; known: {', '.join(sorted(OPS))}")
    given = {
        key: tensor(re.sub(r"\bT\b", str(tokens), value), device) if _is_tensor(value) else value
        for key, value in configuration.get("args", {}).items()
    }
    try:
        return OPS[name].bind((), given)
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from error


def _is_tensor(value: Any) -> bool:
    return isinstance(value, str) and "[" in value
