"""Draws the times in bench/results/gpu_verdicts.json as docs/img/ports_vs_originals.svg: `python -m bench.plot_ports`.

One row a kernel, one dot a shape: the port's time over the original's, cold. Needs matplotlib (extra `bench`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from porter.verify.backends.timing import geomean

ROOT = Path(__file__).resolve().parents[1]


def ratios_of(kernel: dict[str, Any]) -> list[float]:
    """Port over original, cold, at every point where the verifier timed them."""
    (performance,) = (v for v in kernel["verdicts"] if v["check"] == "performance")
    return [row["graph_cold"]["ratio"]["port"] for row in performance["data"]["rows"]]


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    data = json.loads((ROOT / "bench/results/gpu_verdicts.json").read_text())
    rows = sorted(((name, ratios_of(kernel)) for name, kernel in data["kernels"].items()), key=lambda r: geomean(r[1]))
    figure, axes = plt.subplots(figsize=(8, 0.27 * len(rows) + 1.4))
    for y, (_, ratios) in enumerate(rows):
        axes.plot([min(ratios), max(ratios)], [y, y], color="0.75", zorder=1)
        axes.scatter(ratios, [y] * len(ratios), s=14, color="0.35", zorder=2)
        axes.scatter([geomean(ratios)], [y], marker="|", s=120, color="black", zorder=3)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.axvline(1.1, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("port / original, time per call (below 1: the port is faster; dotted: 1.10)")
    axes.set_title(
        f"Ported reference kernels on one {data['device']}, {data['date'][:10]}\nCUDA graph, cold L2; a dot a shape, "
        "a bar the geometric mean", fontsize=9, loc="left",
    )  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(ROOT / "docs/img/ports_vs_originals.svg", metadata={"Date": None})
    figure.savefig(ROOT / "build/ports_vs_originals.png", dpi=110)


if __name__ == "__main__":
    main()
