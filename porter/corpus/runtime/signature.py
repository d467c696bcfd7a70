"""What a corpus kernel's arguments look like, as plain values that its fake arguments are made of."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from porter.corpus.runtime.dtypes import cutlass_type, dtype


@dataclass(frozen=True)
class Tensor:
    """A tensor in global memory. `dtype` is a scalar name (`"bf16"`).

    `shape`: constants, and names for what is known at the launch only; one name is one number in all arguments.
    `stride`: elements; None for a number known at the launch, which is then a multiple of `multiple` elements.
    `align`: bytes that the address is a multiple of.
    `written`: whether the kernel writes to it. Launch functions refuse such a tensor if it shares memory with another
    one, unless both are exactly the same and the number of the other argument is in `in_place`.
    """

    dtype: str
    shape: tuple[int | str, ...]
    stride: tuple[int | None, ...]
    align: int
    multiple: int = 1
    written: bool = False
    in_place: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scalar:
    """A number passed by value: `"f32"`, `"i32"`, `"i64"`, ..."""

    dtype: str


Argument = Tensor | Scalar | None


def written(tensor: Tensor, *in_place: int) -> Tensor:
    """The tensor as one that the kernel writes to, which may also be exactly one of the arguments `in_place`."""
    return replace(tensor, written=True, in_place=in_place)


def rows_of(scalar: str, rows: str, length: int, align: int, inner: int = 1) -> Tensor:
    """A (rows, length) tensor, or (rows, inner, length), whose last dimension is contiguous; the other strides are any
    multiples of `align` bytes."""
    multiple = max(1, align // dtype(scalar).bytes)
    shape = (rows, length) if inner == 1 else (rows, inner, length)
    return Tensor(scalar, shape, (None,) * (len(shape) - 1) + (1,), align, multiple)


def vector(scalar: str, length: int | str, align: int) -> Tensor:
    """A contiguous one-dimensional tensor, at a multiple of `align` bytes or of 16."""
    return Tensor(scalar, (length,), (1,), min(align, 16))


def compile_arguments(arguments: Sequence[Argument]) -> list[Any]:
    """CuTeDSL's fake tensors and numbers for `arguments`, with the stream (torch's current one) at the end."""
    cute = importlib.import_module("cutlass.cute")
    runtime = importlib.import_module("cutlass.cute.runtime")
    symbols: dict[str, Any] = {}
    made: list[Any] = []
    for argument in arguments:
        if argument is None:
            made.append(None)
        elif isinstance(argument, Scalar):
            made.append(cutlass_type(argument.dtype)(0))
        else:
            shape = tuple(symbols.setdefault(n, cute.sym_int()) if isinstance(n, str) else n for n in argument.shape)
            stride = tuple(cute.sym_int64(divisibility=argument.multiple) if s is None else s for s in argument.stride)
            made.append(
                runtime.make_fake_tensor(
                    cutlass_type(argument.dtype), shape, stride=stride, assumed_align=argument.align
                )
            )
    made.append(runtime.make_fake_stream(use_tvm_ffi_env_stream=True))
    return made
