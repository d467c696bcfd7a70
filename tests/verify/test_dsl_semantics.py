"""The installed CuTeDSL against Python, element by element: what releases of it have compiled wrongly without a word.

NVIDIA/cutlass issues 2595 (comparisons in a chain), 2647 (`if`), 3241 (predicated copies). A test here that fails says
that this release of the DSL must not be used, or that ports have to write the construct in another way.
"""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cutlass")

from porter.verify import emulator as ptx
from porter.verify.compile.worker import CompileRequest, compile_port

PORT = Path(__file__).with_name("port_semantics.py")
N, BLOCK = 1000, 128


def chained(a, b, x):
    code = 1 if -5 <= a < 5 else 2 if 5 <= a <= b < 40 else 3 if not (a < b <= 60) else 0
    code += 10 if -1.0 < x <= 1.0 else 0
    code += 100 if a == b == 7 else 0
    return code + (1000 if a < b > 3 else 0)


def branches(a, b, x):
    p, q, kind = a, b, 0
    if p > q:
        if p > 20:
            kind, p = 1, p - q
        else:
            q += 1
            kind = 2 if c_rem(q, 2) == 0 else 0
    elif p == q:
        kind, p = 3, 0
    else:
        p = p + 2 if q > 0 else p - 2
    total = 0
    for k in range(max(c_rem(q, 8), 0)):
        if k % 2 == 0 and k != 4:
            total += k
        elif k == 3:
            total -= p
        else:
            total ^= k
    steps = 0
    while True:
        steps += 1
        if steps * steps > p:
            break
    return kind * 1000000 + total * 100 + p + 7 * q + steps * 10000


def c_rem(a, b):
    """The remainder with the sign of the dividend: what CuTeDSL's `%` of a run-time value is (C's)."""
    return a - b * int(a / b)


def predicated(a, b, x):
    return a if b > 0 else -1


def zero_filled(a, b, x):
    """A cp.async whose predicate is false writes zeros."""
    return a if b > 0 else 0


KERNELS = [(chained, 1), (branches, 1), (predicated, 4), (predicated, 4), (zero_filled, 4)]
NAMES = ["chained", "branches", "predicated", "predicated atom", "predicated cp.async"]


def inputs(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(-10, 80, N).astype(np.int32)
    b = rng.integers(-10, 80, N).astype(np.int32)
    a[:50] = b[:50]
    a[:20] = b[:20] = 7
    x = rng.uniform(-2, 2, N).astype(np.float32)
    x[:6] = (np.nan, np.inf, -np.inf, 1.0, -1.0, -0.0)
    return a, b, x


@pytest.fixture(scope="module")
def compiled():
    made = compile_port(PORT, [CompileRequest({"WHICH": n}, "sm_90a") for n in range(len(KERNELS))])
    assert all(m.ok for m in made), [m.error for m in made if not m.ok]
    return made


def launched(text, entry, which, seed, backend="auto"):
    """(what came out, what Python says, the inputs, violations)."""
    expected, each = KERNELS[which]
    a, b, x = inputs(seed)
    out = np.full(N, -77777, np.int32)
    arrays = (("out", out), ("a", a), ("b", b), ("x", x))
    buffers = [ptx.Buffer(array, name=name, initialised=True) for name, array in arrays]
    grid = -(-N // (BLOCK * each))
    arguments = [*buffers, np.int32(N)]
    result = ptx.launch(ptx.load(text), entry, (grid, 1, 1), (BLOCK, 1, 1), arguments, backend=backend, budget=10**8)
    want = np.array([expected(int(i), int(j), float(k)) for i, j, k in zip(a, b, x, strict=True)])
    return out, want, (a, b, x), result.violations


@pytest.mark.parametrize("which", range(len(KERNELS)), ids=NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_compiled_code_does_what_python_says(compiled, which, seed):
    out, want, (a, b, x), violations = launched(compiled[which].ptx, compiled[which].entry, which, seed)
    assert not violations, violations[:3]
    wrong = np.flatnonzero(out != want)
    assert not len(wrong), [(a[w], b[w], x[w], out[w], want[w]) for w in wrong[:5]]
    assert len(np.unique(want)) > 5


@pytest.mark.parametrize("which", (0, 1, 2), ids=NAMES[:3])
def test_a_comparison_compiled_the_other_way_round_would_be_seen(compiled, which):
    """The test's own eyes: a kernel with the last of its comparisons inverted in the PTX."""
    text = compiled[which].ptx
    inverse = {"lt": "ge", "gt": "le", "le": "gt", "ge": "lt", "eq": "ne", "ne": "eq"}
    *_, place = re.finditer(r"setp\.(lt|gt|le|ge|eq|ne)\.[sf]32", text)
    changed = text[: place.start(1)] + inverse[place.group(1)] + text[place.end(1) :]
    out, want, _, violations = launched(changed, compiled[which].entry, which, 3, "numpy")
    assert violations or (out != want).any()
