"""Compile and run the snippets of porter/agents/rules.py with the installed DSL; what they do goes into rules.json.

`--check` writes nothing and fails where the file says something else."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from porter.agents.knowledge import RECORD, stale
from porter.agents.knowledge import record as recorded
from porter.agents.rules import INPUT, RULES, Snippet
from porter.corpus.runtime.dsl import dsl_version
from porter.verify import emulator as ptx
from porter.verify.compile.worker import CompileRequest, compile_port

ARCH = "sm_90a"


def try_out(snippet: Snippet) -> dict[str, object]:
    """{"gives": out[0]} on the emulator, or {"refused": the first line of what the DSL says}."""
    with tempfile.TemporaryDirectory(prefix="porter-") as folder:
        path = Path(folder) / "snippet.py"
        path.write_text(snippet.module, encoding="utf-8")
        (result,) = compile_port(path, [CompileRequest({}, ARCH)], jobs=1)
    if not result.ok:
        words = result.error.strip().splitlines()[0] if result.error.strip() else "refused"
        return {"refused": f"[{result.error_id}] {words}" if result.error_id else words}
    out = np.full(32, -1, np.int32)
    given = np.array([*INPUT, *([0] * 28)], np.int32)
    buffers = [ptx.Buffer(out, name="out"), ptx.Buffer(given, name="a", writable=False)]
    ptx.launch(ptx.load(result.ptx), result.entry, 1, 1, [*buffers, np.int32(2)])
    return {"gives": int(out[0])}


def record() -> dict[str, object]:
    seen = {s.digest: try_out(s) for rule in RULES for s in rule.snippets}
    return {"dsl": dsl_version(), "seen": seen}


def main() -> int:
    found = record()
    if "--check" in sys.argv[1:]:
        wrong = stale(recorded(), found)
        print("\n".join([*wrong, "run python tools/record_rules.py"]) if wrong else "rules.json is what the DSL does")
        return int(bool(wrong))
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"recorded {len(found['seen'])} snippets with {found['dsl']}")  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(main())
