"""Float64 references of kernels by name: the oracle that arbitrates between an original and its port. numpy only.

A reference takes the decoded inputs of a launch and gives what each output holds before its last rounding:

    reference(inputs, scalars, sizes, args) -> {buffer: float64 or integer array}

`inputs` are the in and inout buffers in their shape (a null pointer is absent), `scalars` the other parameters, `sizes`
the case's sizes, `args` the template arguments ({"scalar_t": "bf16", "VEC": 8}). Three conventions:

- Roundings in the middle of a computation that the kernel's contract fixes are applied: codes and statistics depend on
  them. Where engines disagree the name carries a profile: `fused_add_rms_norm:vllm`, `fused_add_rms_norm:flashinfer`.
- A buffer of quantised codes comes twice: `name` has the value of each code, `name:pre` the value before rounding.
  Where a code depends on an earlier rounding that float32 cannot decide, `name:pre` is on the boundary between them.
- NaN in a float buffer is what the kernel must write, or an element it does not write; NaN in an integer buffer (then
  float64) is an element the contract leaves open, such as the order of values that float32 cannot tell apart.
"""

from __future__ import annotations

from porter.verify.numerics.references import activation, embedding, moe, norm, quant, rotary, softmax
from porter.verify.numerics.references.registry import Arrays, Reference, get, names

__all__ = ["Arrays", "Reference", "get", "names"]

FAMILIES = (activation, embedding, moe, norm, quant, rotary, softmax)
