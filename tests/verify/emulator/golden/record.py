"""The recorded results in the repository: digest and first results of exact operations, all of approximate ones.

python -m tests.verify.emulator.golden.record FULL.npz     (turns produce.py's output into h200.npz beside this file)
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

from tests.verify.emulator.golden.specs import all_specs

FILE = Path(__file__).with_name("h200.npz")
KEPT = 96


def digest(results: np.ndarray) -> np.ndarray:
    return np.frombuffer(hashlib.sha256(results.tobytes()).digest(), np.uint8)


def main(source: str) -> None:
    full = np.load(source)
    out: dict[str, np.ndarray] = {"machine": full["machine"]}
    for spec in all_specs():
        results = full[spec.name]
        if spec.approximate:
            out[spec.name] = results
        else:
            out[spec.name] = results[:KEPT]
            out["sha256 " + spec.name] = digest(results)
    np.savez_compressed(FILE, **out)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1])
