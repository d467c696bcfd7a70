"""Run `porter port` for real and draw what it printed: docs/img/port-rms-norm.svg, the picture of the README."""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from porter.config import PortConfig
from porter.pipeline import port_files
from porter.progress import ProgressTable
from porter.report import print_diagnostics, print_report

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("reference_kernels/norm/rms_norm.cu")


def main() -> int:
    out = Console(
        record=True, width=120, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )
    table = ProgressTable()
    with tempfile.TemporaryDirectory() as folder:
        config = PortConfig(output=Path(folder) / "ported")
        report = port_files([SOURCE], config, table.add)
        out.print("[bold]$ porter port reference_kernels/norm/rms_norm.cu -o ported[/]\n")
        out.print(table.draw())
        out.print()
        print_report(report, out)
        print_diagnostics(report.diagnostics, out)
        svg = out.export_svg(title="porter port").replace(f"{folder}/", "")
        svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # no fonts from the network
    target = ROOT / "docs/img/port-rms-norm.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(svg, encoding="utf-8")
    print(f"wrote {target.relative_to(ROOT)}")
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
