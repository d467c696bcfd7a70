"""Pictures of bench/results/corpus_vs_peers.json for the docs: `python -m bench.plot_corpus`. Needs matplotlib.

docs/img/corpus_bandwidth.svg: the largest shape of each kernel as a share of the copy ceiling, every library.
docs/img/corpus_latency.svg: microseconds by tokens, one panel a kernel and width.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench/results/corpus_vs_peers.json"
COLOURS = {
    "porter": "#c1121f", "vllm": "#457b9d", "flashinfer": "#2a9d8f", "flashinfer+pdl": "#76c893", "quack": "#e9a23b",
    "torch.compile": "#8d99ae", "triton": "#9d4edd", "empty": "#cccccc",
}  # fmt: skip
COLUMNS = 4


def timed(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [r for r in record["rows"] if "graph_cold" in r]


def times(row: dict[str, Any]) -> dict[str, float]:
    """Microseconds of each library at a row."""
    return {k: v for k, v in row["graph_cold"]["us"].items() if k not in ("again", "empty")}


def by_panel(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of one kernel and width, by tokens."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        width = f" x{row['shape'][1]}" if len(row["shape"]) > 1 else ""
        found[row["kernel"] + width].append(row)
    return {k: sorted(v, key=lambda r: r["shape"][0]) for k, v in found.items() if len(v) > 1}


def largest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The row that moves the most bytes of each kernel."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["kernel"] not in found or row["bytes"] > found[row["kernel"]]["bytes"]:
            found[row["kernel"]] = row
    return list(found.values())


def bandwidth(record: dict[str, Any], path: Path) -> None:
    from matplotlib import pyplot

    rows = largest(timed(record))
    names = [n for n in COLOURS if any(n in times(r) for r in rows)]
    figure, axes = pyplot.subplots(figsize=(9, 0.5 * len(rows) + 1.2))
    height = 0.8 / max(1, len(names))
    for n, name in enumerate(names):
        shares = [
            100 * r["bytes"] / times(r)[name] / 1e3 / record["copy_gbps"] if name in times(r) else 0 for r in rows
        ]
        at = [i + n * height for i in range(len(rows))]
        axes.barh(at, shares, height, label=name, color=COLOURS[name])
    axes.set_yticks([i + 0.4 for i in range(len(rows))])
    axes.set_yticklabels([f"{r['kernel']} {'x'.join(map(str, r['shape']))}" for r in rows], fontsize=8)
    axes.axvline(100, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel(f"% of the copy ceiling, {record['copy_gbps']:.0f} GB/s ({record['device']}, cold L2)")
    axes.legend(fontsize=7, ncols=4, loc="lower right")
    figure.tight_layout()
    figure.savefig(path)


def latency(record: dict[str, Any], path: Path) -> None:
    from matplotlib import pyplot

    panels = by_panel(timed(record))
    lines = -(-len(panels) // COLUMNS)
    figure, grid = pyplot.subplots(lines, COLUMNS, figsize=(3.2 * COLUMNS, 2.4 * lines), squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    for axes, (title, rows) in zip(grid.flat, panels.items(), strict=False):
        for name, colour in COLOURS.items():
            points = [(r["shape"][0], r["graph_cold"]["us"][name]) for r in rows if name in r["graph_cold"]["us"]]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1, color=colour, label=name)
        axes.plot([r["shape"][0] for r in rows], [max(r["floor_us"], 1e-2) for r in rows], "k:", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
        axes.set_title(title, fontsize=8)
        axes.tick_params(labelsize=7)
    handles = {label: h for axes in grid.flat for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=len(handles) or 1, fontsize=8)
    figure.suptitle(
        f"microseconds a call by tokens; dotted: bytes at copy speed ({record['device']}, cold L2)", fontsize=9
    )
    figure.tight_layout(rect=(0, 0.04, 1, 0.98))
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.plot_corpus", description=__doc__)
    parser.add_argument("--result", type=Path, default=RESULT)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs/img")
    args = parser.parse_args()
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "porter"  # the same picture from the same numbers
    record = json.loads(args.result.read_text())
    args.folder.mkdir(parents=True, exist_ok=True)
    bandwidth(record, args.folder / "corpus_bandwidth.svg")
    latency(record, args.folder / "corpus_latency.svg")


if __name__ == "__main__":
    main()
