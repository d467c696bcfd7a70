"""Port and verify a reference kernel, review a part, draw the screen: docs/img/review.svg, in the README."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import tempfile
from pathlib import Path

from porter.config import PortConfig
from porter.pipeline.stages import port_files
from porter.review.app import ReviewApp
from porter.review.port.actions import accept
from porter.review.port.reviewed_port import load
from porter.review.screens.review import ReviewScreen

ROOT = Path(__file__).resolve().parent.parent
KERNEL = ROOT / "reference_kernels/norm/rms_norm"
DECIDED = 12  # regions that are accepted in the picture


async def picture(port: Path) -> str:
    app = ReviewApp([port], PortConfig())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, ReviewScreen)
        loaded = screen.port
        screen.go_to(next(r for r in loaded.regions if "sum_sq + f * f" in loaded.port_text(r)))
        await pilot.pause()
        return app.export_screenshot(title="porter review ported/rms_norm.py", simplify=True)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for suffix in (".cu", ".case.toml"):
            shutil.copy(KERNEL.with_name(KERNEL.name + suffix), folder)
        report = port_files([folder / "rms_norm.cu"], PortConfig(output=folder / "ported"))
        port = folder / "ported" / "rms_norm.py"
        for region in load(port).regions[:DECIDED]:
            accept(load(port), region)
        svg = asyncio.run(picture(port))
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # no fonts from the network
    assert name not in svg
    target = ROOT / "docs/img/review.svg"
    target.write_text(svg, encoding="utf-8")
    print(f"wrote {target.relative_to(ROOT)}")
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
