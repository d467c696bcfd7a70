"""Which reference kernels are written over tensors, and what stops the rest: `python -m tools.lift_table`.

Ports every reference kernel with `--style tensor` and verification (four minutes on two cores), prints the table of
docs/tensor-style.md and, with --write, puts it there and what it says into bench/results/lifted.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from porter import codes
from porter.config import PortConfig
from porter.lift.explain import Remark, explain
from porter.pipeline.inputs import case_if_any, choose_kernels, parse
from porter.pipeline.outputs import Translation
from porter.pipeline.stages import Run, port, translate
from porter.pipeline.style import in_style
from porter.provenance.baseline import is_good

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "reference_kernels").glob("*/*.cu"))
RESULT = ROOT / "bench/results/lifted.json"
PAGE = ROOT / "docs/tensor-style.md"
BEGIN, END = "<!-- lifted: python -m tools.lift_table --write -->\n", "<!-- end of lifted -->\n"


@dataclass(frozen=True)
class Row:
    """A kernel: lines of its port that a lift wrote, that access a buffer through a pointer, and that touch shared
    memory alone; what keeps those of the second kind; the style that was written, and why not over tensors."""

    kernel: str
    lifted: int
    left: int
    shared: int
    why: list[str]
    style: str = ""
    fallback: str = ""

    def data(self) -> dict[str, Any]:
        return vars(self)


def remarks_of(made: Translation) -> list[Remark]:
    """The remarks about the form over tensors of a translation."""
    lifted = in_style(made, "tensor")
    return explain(lifted.module, lifted.plan)


def row_of(kernel: str, remarks: list[Remark], style: str = "", fallback: str = "") -> Row:
    left = [r for r in remarks if r.why and not r.shared]
    return Row(
        kernel, sum(1 for r in remarks if r.lifts), len(left), sum(1 for r in remarks if r.shared),
        sorted({r.why for r in left}), style, fallback,
    )  # fmt: skip


def measured(path: Path) -> Row:
    """A kernel ported over tensors and verified."""
    with tempfile.TemporaryDirectory() as work:
        config = PortConfig(style="tensor", output=Path(work), arch=("sm_90a",))
        unit = parse(path, config)
        (info,) = choose_kernels(unit, config)
        remarks = remarks_of(translate(unit, info, case_if_any(unit, info, config), config, Run(info.name)))
        (report,) = port(path, config).kernels
        assert is_good(report.verdicts), f"{path.stem} does not verify"
        told = next((d.message for d in report.diagnostics if d.code == codes.NOT_IN_TENSOR_STYLE), "")
        return row_of(path.stem, remarks, "pointer" if told else "tensor", told.partition(": ")[2])


def table(rows: list[Row]) -> str:
    """The rows in Markdown, with the totals above."""
    written = [r for r in rows if r.style == "tensor"]
    whole = [r for r in written if not r.left]
    bare = [r for r in whole if not r.shared]
    lines = [
        f"Of the {len(rows)} reference kernels, {len(written)} are written over tensors, verified bit-equal on the"
        f" emulator; {len(whole)} of them",
        f"access no buffer through a pointer, {len(bare)} of these no shared memory either.",
        "",
        "| kernel | lines lifted | over pointers | shared memory | written over | what stops the rest |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        why = "; ".join([*([r.fallback] if r.fallback else []), *r.why]).replace("|", "\\|").replace("<", "&lt;")
        over = {"tensor": "tensors", "pointer": "pointers"}[r.style]
        lines.append(f"| `{r.kernel}` | {r.lifted} | {r.left} | {r.shared} | {over} | {why} |")
    return "\n".join(lines) + "\n"


def put(page: str, text: str) -> str:
    """The page with the table in its place."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{text}\n{END}{tail}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.lift_table", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name} and the table of {PAGE.name}")
    args = parser.parse_args()
    rows = []
    for path in SOURCES:
        rows.append(measured(path))
        print(rows[-1], flush=True)
    print(table(rows), end="")
    if args.write:
        RESULT.write_text(json.dumps({"schema": 1, "kernels": [r.data() for r in rows]}, indent=1) + "\n")
        PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), table(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
