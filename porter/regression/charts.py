"""Bar charts as inline SVG. Every bar is labelled with its number: colour says nothing that text does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

ROW, BAR, LEFT, WIDTH, RIGHT = 22, 14, 190, 320, 150


@dataclass(frozen=True)
class Bar:
    """One bar: `text` is written after it; `mark` hatches it (the port beside the original)."""

    label: str
    value: float
    text: str
    mark: bool = False


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Horizontal bars from zero, one below the other. `title` is also the accessible name."""
    most = max((b.value for b in bars), default=0.0) or 1.0
    height = ROW * len(bars) + 4
    rows = []
    for n, bar in enumerate(bars):
        y = n * ROW + 3
        length = max(1.0, WIDTH * bar.value / most) if bar.value > 0 else 0.0
        kind = "mark" if bar.mark else "bar"
        rows.append(
            f'<text x="{LEFT - 6}" y="{y + 11}" text-anchor="end">{escape(bar.label)}</text>'
            f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}"/>'
            f'<text x="{LEFT + length + 5:.1f}" y="{y + 11}">{escape(bar.text)}</text>'
        )
    size = f'width="{LEFT + WIDTH + RIGHT}" height="{height}" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}"'
    name = escape(title)
    drawing = f'<svg role="img" aria-label="{name}" {size}>{"".join(rows)}</svg>'
    return f"<figure><figcaption>{name}</figcaption>{drawing}</figure>"


def ulp_label(power: int) -> str:
    """The distances that an element of ulp_histogram stands for: `equal`, `1 ulp`, `2 to 3 ulp`, ..."""
    if power == 0:
        return "equal"
    low, high = 1 << (power - 1), (1 << power) - 1
    return f"{low} ulp" if low == high else f"{low} to {high} ulp"
