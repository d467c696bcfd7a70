"""`porter new`: the files of a new reference kernel or pattern. Never overwrites."""

from __future__ import annotations

import re
from pathlib import Path

from porter import codes
from porter.files.atomic import write_atomic, writing_failed
from porter.model import Diagnostic, PorterError
from porter.source import Span

KERNEL = """\
// {title}. One row per block; explain here what the kernel shows and which engines use it.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
__global__ void {name}_kernel(T* __restrict__ out,          // [rows, n]
                              const T* __restrict__ input,  // [rows, n]
                              int n) {{
  const int row = blockIdx.x;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {{
    const float x = static_cast<float>(input[row * n + i]);
    out[row * n + i] = static_cast<T>(x);
  }}
}}

void {name}(__nv_bfloat16* out, const __nv_bfloat16* input, int rows, int n, cudaStream_t stream) {{
  if (rows == 0) return;
  {name}_kernel<__nv_bfloat16><<<rows, n < 1024 ? n : 1024, 0, stream>>>(out, input, n);
}}
"""

CASE = """\
schema = 1
kernel = "{name}_kernel"

[[instances]]
args = ["__nv_bfloat16"]

[[instances]]
args = ["__half"]

[sizes]
rows = [0, 1, 7, 33]
n = [1, 64, 768, 1000]

[[buffers]]
name = "out"
dtype = "T"
shape = ["rows", "n"]
role = "out"

[[buffers]]
name = "input"
dtype = "T"
shape = ["rows", "n"]
role = "in"

[scalars]
n = "n"

[launch]
grid = ["rows", 1, 1]
block = ["min(n, 1024)", 1, 1]
"""

PATTERN = '''\
"""{title}: say which CUDA idiom this finds and what it becomes. Exact, or state what it assumes."""

from __future__ import annotations

from porter.ir import Expr, Stmt


def {name}(stmt: Stmt) -> Expr | Stmt | None:
    """The rewritten statement, or None when the idiom is not here. Never raises, never changes its argument."""
    return None
'''

PATTERN_TEST = '''\
"""Pattern {name}: it applies to its idiom, and leaves what only looks like it alone."""

from __future__ import annotations

from porter.ir import Return
from porter.patterns.{name} import {name}


def test_leaves_other_statements_alone() -> None:
    assert {name}(Return()) is None
'''


def create(kind: str, name: str, root: Path) -> list[Path]:
    """Write the files for `kind` ("kernel" or "pattern") below the checkout `root` and return their paths.

    Raises PorterError: PRT952 for a name that cannot be, PRT954 when a file exists, PRT953 when it cannot be written.
    """
    family, _, base = name.rpartition("/")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", base) or (family and not re.fullmatch(r"[a-z][a-z0-9_]*", family)):
        raise PorterError(
            Diagnostic(codes.BAD_OPTION, f"`{name}` cannot be a name", help="use lower_case words: family/name or name")
        )
    if not (root / "porter" / "patterns").is_dir():
        raise PorterError(
            Diagnostic(
                codes.BAD_OPTION, f"{root} is not a checkout of porter", help="run this at the repository's root"
            )
        )
    fill = {"name": base, "title": base.replace("_", " ").capitalize()}
    if kind == "kernel":
        folder = root / "reference_kernels" / (family or "misc")
        files = {folder / f"{base}.cu": KERNEL, folder / f"{base}.case.toml": CASE}
    else:
        if family:
            raise PorterError(Diagnostic(codes.BAD_OPTION, f"a pattern has no family: `{name}`", help=f"use `{base}`"))
        files = {
            root / "porter" / "patterns" / f"{base}.py": PATTERN,
            root / "tests" / "patterns" / f"test_{base}.py": PATTERN_TEST,
        }
    taken = [p for p in files if p.exists()]
    if taken:
        raise PorterError(
            Diagnostic(
                codes.PORT_EDITED,
                f"{taken[0]} exists",
                Span(str(taken[0]), 0, 0),
                help="choose another name, or edit that file",
            )
        )
    for path, template in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, template.format(**fill))
        except OSError as error:
            raise writing_failed(path, error) from error
    return list(files)
