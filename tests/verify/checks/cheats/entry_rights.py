"""Torch-facing functions of rms_norm that are written otherwise than porter writes them, and are right.

Each takes the place of the function in the true port; those with `import torch` need it.
"""

from __future__ import annotations

import re

from tests.verify.checks.cheats.text import Port

_SIGNATURE = "def rms_norm(out, input, weight, epsilon):\n"
_SIZES = """    tokens, hidden = out.shape
    input_stride = input.stride(0)
"""
_CHECKS = """    scalar_t = runtime.name_of(out.dtype)
    runtime.check("out", out, scalar_t, (tokens, hidden))
    runtime.check("input", input, scalar_t, (tokens, hidden), strides=(input_stride, 1), device=out.device)
    runtime.check("weight", weight, scalar_t, (hidden,), device=out.device)
"""
_CHOICE = """    wide = hidden % 8 == 0 and input_stride % 8 == 0
    wide = wide and runtime.aligned(input, 16) and runtime.aligned(weight, 16) and runtime.aligned(out, 16)
    if scalar_t not in ("bf16", "f16"):
        raise ValueError(f"no instance for {scalar_t}")
    constexprs = {"scalar_t": scalar_t, "VEC": 8 if wide else 1}
"""
_SHAPE = "    grid, block, smem_bytes = launch_config(tokens=tokens, hidden=hidden, **constexprs)\n"
_LAUNCH = """    args = (out, input, input_stride, weight, epsilon, hidden)
    KERNEL.launch(constexprs, args, grid=grid, block=block, smem_bytes=smem_bytes)
"""
_BODY = _SIZES + _CHECKS + _CHOICE + _SHAPE + _LAUNCH

RIGHTS: dict[str, str] = {
    "one-choice": _SIGNATURE + _BODY,
    "keywords-of-launch": _SIGNATURE
    + _BODY.replace("KERNEL.launch(constexprs, args, ", "KERNEL.launch(constexprs=constexprs, args=args, "),
    "arguments-as-a-list": _SIGNATURE
    + _BODY.replace("args = (out, input, input_stride, weight, epsilon, hidden)",
                    "tensors = [out, input, weight]\n"
                    "    args = [*tensors[:2], input_stride, tensors[2], epsilon, hidden]"),
    "addresses": _SIGNATURE
    + _BODY.replace("(out, input, input_stride, weight,",
                    "(out.data_ptr(), input.data_ptr(), input_stride, weight.data_ptr(),")
    .replace("smem_bytes=smem_bytes)", "smem_bytes=smem_bytes, device=out.device)"),
    "empty-returns-early": _SIGNATURE + _SIZES + _CHECKS + "    if out.numel() == 0:\n        return\n" + _CHOICE
    + _SHAPE + _LAUNCH,
    "returns-the-output": _SIGNATURE + _BODY + "    return out\n",
    "default-number": _SIGNATURE.replace("epsilon", "epsilon=1e-5") + _BODY,
    "keyword-only": _SIGNATURE.replace("out, ", "").replace("epsilon", "epsilon, *, out") + _BODY,
    "other-names": "def run(y, x, w, eps):\n" + re.sub(
        r"\b(out|input|weight|epsilon)\b(?!\")",
        lambda m: {"out": "y", "input": "x", "weight": "w", "epsilon": "eps"}[m.group()], _BODY),
    "own-checks": _SIGNATURE + _SIZES + """    if input.dtype != out.dtype or weight.dtype != out.dtype:
        raise ValueError("operands of several dtypes")
    if input.shape != out.shape or weight.shape[0] != hidden or weight.dim() != 1:
        raise ValueError("shapes that do not fit")
    if not out.is_contiguous() or not weight.is_contiguous() or hidden > 1 and input.stride(-1) != 1:
        raise ValueError("strides that the kernel does not take")
    scalar_t = runtime.name_of(out.dtype)
""" + _CHOICE + _SHAPE + _LAUNCH,
    "helper-functions": """def _check(out, input, weight, scalar_t):
    rows, cols = out.shape
    runtime.check("out", out, scalar_t, (rows, cols))
    runtime.check("input", input, scalar_t, (rows, cols), strides=(input.stride(0), 1), device=out.device)
    runtime.check("weight", weight, scalar_t, (cols,), device=out.device)


def _aligned(*tensors):
    return all(t.data_ptr() % 16 == 0 for t in tensors)


""" + _SIGNATURE + """    scalar_t = runtime.name_of(out.dtype)
    tokens, hidden = out.shape
    input_stride = input.stride(0)
    _check(out, input, weight, scalar_t)
    if scalar_t not in ("bf16", "f16"):
        raise ValueError(f"no instance for {scalar_t}")
    wide = hidden % 8 == 0 and input_stride % 8 == 0 and _aligned(out, input, weight)
    constexprs = {"scalar_t": scalar_t, "VEC": 8 if wide else 1}
""" + _SHAPE + _LAUNCH,
    "launches-in-a-helper": "def _launch(constexprs, args, tokens, hidden):\n" + _SHAPE
    + "    KERNEL.launch(constexprs, args, grid=grid, block=block, smem_bytes=smem_bytes)\n\n\n" + _SIGNATURE + _SIZES
    + _CHECKS + _CHOICE
    + "    _launch(constexprs, (out, input, input_stride, weight, epsilon, hidden), tokens, hidden)\n",
    "two-functions": _SIGNATURE + _BODY + """

def rms_norm_of_rows(input, weight, epsilon):
    out = input.new_empty(input.shape)
    rms_norm(out, input, weight, epsilon)
    return out
""",
    "views": _SIGNATURE + _BODY.replace(
        "args = (out, input,", "args = (out.view(-1), input.unsqueeze(0)[0],"),
    "table-of-instances": _SIGNATURE + _SIZES + _CHECKS + _CHOICE.replace(
        '    constexprs = {"scalar_t": scalar_t, "VEC": 8 if wide else 1}\n',
        '    table = {(t, v): {"scalar_t": t, "VEC": v} for t in ("bf16", "f16") for v in (8, 1)}\n'
        "    constexprs = table[scalar_t, 8 if wide else 1]\n") + _SHAPE + _LAUNCH,
    "grid-in-place": _SIGNATURE + _SIZES + _CHECKS + _CHOICE
    + "    smem_bytes, grid = 0, (tokens, 1, 1)\n    vectors = -(-hidden // constexprs[\"VEC\"])\n"
    + "    block = (min(-(-vectors // 32) * 32, 1024), 1, 1)\n" + _LAUNCH,
}  # fmt: skip

WITH_TORCH: dict[str, str] = {
    "asks-torch": "def rms_norm(out: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, epsilon: float):\n"
    + """    if not isinstance(out, torch.Tensor) or not out.is_cuda or not input.is_cuda or not weight.is_cuda:
        raise TypeError("rms_norm takes CUDA tensors")
    if out.dtype not in (torch.bfloat16, torch.float16):
        raise ValueError("rms_norm takes bf16 and f16")
"""
    + _BODY,
    "allocates-with-torch": "def rms_norm(input, weight, epsilon):\n"
    "    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)\n" + _BODY + "    return out\n",
    "current-stream": _SIGNATURE
    + _BODY.replace("smem_bytes=smem_bytes)", "smem_bytes=smem_bytes, stream=torch.cuda.current_stream(out.device))"),
    "custom-op": '@torch.library.custom_op("porter_tests::rms_norm", mutates_args=("out",))\n'
    "def rms_norm(out: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:\n" + _BODY,
}


def written(port: Port, name: str) -> str:
    """The true port with a function of these in the place of its own."""
    at = port.text.index(f"def {port.wrapper.name}(")
    if name in WITH_TORCH:
        whole = port.with_import("import torch")
        return whole.text[: whole.text.index(f"def {port.wrapper.name}(")] + WITH_TORCH[name]
    return port.text[:at] + RIGHTS[name]
