"""`--html`: one page with verdicts, error histograms and times, that needs nothing beside itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from porter.model import Diagnostic, KernelReport, Report, Status, Verdict, facts_of
from porter.model.facts import NumericsFacts, OutputErrors, PerformanceFacts, ResourcesFacts, TimingFacts
from porter.pipeline.outputs import now
from porter.provenance.record import tool_versions
from porter.regression.charts import Bar, bar_chart, ulp_label
from porter.regression.findings import ReportedDiagnostic
from porter.report.console import is_verified, totals

SIGN = {Status.PASS: "✓", Status.FAIL: "✗", Status.ERROR: "!", Status.SKIP: "–"}
STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #4c78a8; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
table { border-collapse: collapse; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.FAIL, .ERROR { font-weight: 700; text-decoration: underline; } .SKIP { opacity: .75; font-style: italic; }
pre { overflow-x: auto; border-left: 3px solid var(--line); padding-left: .8rem; white-space: pre-wrap; }
svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
rect.bar { fill: var(--bar); } rect.mark { fill: url(#hatch); stroke: var(--bar); }
figure { margin: .6rem 0; } figcaption { font-weight: 600; } details { margin: .4rem 0; } h2 { margin-top: 2.2rem; }
""".strip()
HATCH = """
<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="3" height="6" fill="#4c78a8"/></pattern></defs></svg>
""".strip()


def page(report: Report) -> str:
    """The whole HTML document."""
    body = [
        HATCH,
        "<h1>porter verify</h1>",
        f"<p><strong>{escape(totals(report))}</strong>; exit code {report.exit_code}; {escape(now())}; "
        f"{escape(', '.join(f'{k} {v}' for k, v in tool_versions().items()))}</p>",
        *_diagnostics(report.diagnostics),
        _overview(report),
        *(part for n, kernel in enumerate(report.kernels) for part in _kernel(kernel, n)),
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>porter verify</title>'
    head += f"<style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body></html>\n"


def _overview(report: Report) -> str:
    checks = list(dict.fromkeys(v.check for k in report.kernels for v in k.verdicts))
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in ["port", *checks, "verified", "seconds"])
    rows = []
    for n, kernel in enumerate(report.kernels):
        by_check = {v.check: v for v in kernel.verdicts}
        cells = "".join(_cell(by_check.get(c)) for c in checks)
        name = f'<th scope="row"><a href="#k{n}">{escape(kernel.port_path or kernel.kernel)}</a></th>'
        seconds = kernel.seconds.get("total", 0.0)
        verified = "yes" if is_verified(kernel) else "no"
        rows.append(f'<tr>{name}{cells}<td>{verified}</td><td class="n">{seconds:.2f}</td></tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "<td>not run</td>"
    status = verdict.status
    return f'<td class="{status.value}">{SIGN[status]} {status.value}</td>'


def _kernel(kernel: KernelReport, number: int) -> Iterator[str]:
    yield f'<h2 id="k{number}">{escape(kernel.kernel)}</h2>'
    instances = " ".join(str(i) for i in kernel.instances if i.args)
    yield f"<p>{escape(str(kernel.source.path))} → {escape(kernel.port_path)} {escape(instances)}</p>"
    rows = (
        f'<tr><th scope="row">{escape(v.check)}</th>{_cell(v)}<td>{escape(v.detail)}</td></tr>' for v in kernel.verdicts
    )
    yield f"<table><tbody>{''.join(rows)}</tbody></table>"
    if kernel.holes:
        holes = "".join(
            f"<li>{escape(h.code)} {escape(h.reason)}: <code>{escape(h.cuda)}</code></li>" for h in kernel.holes
        )
        yield f"<p>Open holes:</p><ul>{holes}</ul>"
    yield from _diagnostics((*kernel.diagnostics, *(d for v in kernel.verdicts for d in v.diagnostics)))
    yield from _errors(facts_of(kernel.verdicts, NumericsFacts) or NumericsFacts())
    yield from _resources(facts_of(kernel.verdicts, ResourcesFacts) or ResourcesFacts())
    yield from _times(facts_of(kernel.verdicts, PerformanceFacts) or PerformanceFacts())
    stages = [Bar(s, t, f"{t:.2f} s") for s, t in kernel.seconds.items() if s != "total"]
    if stages:
        yield f"<details><summary>time of the verification</summary>{bar_chart('seconds by stage', stages)}</details>"


def _diagnostics(diagnostics: tuple[Diagnostic, ...]) -> Iterator[str]:
    for d in dict.fromkeys(diagnostics):
        place = f"{d.span.file}:{d.span.line}: " if d.span.file else ""
        text = f"{escape(place)}{escape(d.code)} {escape(ReportedDiagnostic(d).text)}"
        yield f"<pre>{escape(d.severity.value)}: {text}</pre>"


def _errors(numerics: NumericsFacts) -> Iterator[str]:
    """A row for each output, and a histogram of distances where not every element is bit-equal."""
    rows, charts = [], []
    for instance, buffers in numerics.buffers.items():
        for name, row in buffers.items():
            label = f"{name} {instance}".strip()
            cells = [row.verdict, row.elements, row.different, row.max_ulp]
            cells += [row.excused, row.rms_original, row.rms_port]
            shown = "".join(f'<td class="n">{escape(str(c))}</td>' for c in cells)
            rows.append(f'<tr><th scope="row">{escape(label)}</th>{shown}<td>{escape(row.tolerance)}</td></tr>')
            if row.different:
                charts.append(_histogram(label, row))
    if rows:
        names = (
            "output",
            "verdict",
            "elements",
            "not bit-equal",
            "max ulp",
            "excused",
            "RMS original",
            "RMS port",
            "tolerance",
        )
        head = "".join(f'<th scope="col">{n}</th>' for n in names)
        yield f"<h3>errors</h3><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    yield from charts


def _histogram(label: str, row: OutputErrors) -> str:
    counts, rest = row.histogram
    bars = [Bar(ulp_label(n), math.log10(1 + c), f"{c:,}") for n, c in enumerate(counts)]
    if rest:
        bars.append(Bar("no distance", math.log10(1 + rest), f"{rest:,} (NaN, or integers)"))
    return bar_chart(f"{label}: elements by distance from the original (bars logarithmic)", bars)


def _resources(facts: ResourcesFacts) -> Iterator[str]:
    rows = []
    for instance, used in facts.instances.items():
        names = ("registers", "spills", "local_bytes", "shared_bytes", "loads_128", "stores_128", "barriers")
        cells = "".join(f"<td>{used.port.get(n, 0)} ({used.original.get(n, 0)})</td>" for n in names)
        rows.append(f'<tr><th scope="row">{escape(instance or "-")}</th>{cells}</tr>')
    if rows:
        titles = (
            "instance",
            "registers",
            "spills",
            "local bytes",
            "shared bytes",
            "128-bit loads",
            "128-bit stores",
            "barriers",
        )
        head = "".join(f'<th scope="col">{t}</th>' for t in titles)
        yield "<h3>resources, the original's in brackets</h3>"
        yield f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _times(facts: PerformanceFacts) -> Iterator[str]:
    """Original and port side by side at each point that was timed on a GPU."""
    bars: list[Bar] = []
    for row in facts.rows or ():
        timing = row.timings.get("graph_cold", TimingFacts())
        sizes = " ".join(f"{k}={v}" for k, v in row.sizes.items())
        us, ratio = timing.us, timing.ratio.get("port")
        if "original" in us and "port" in us and ratio is not None:
            spread = f"±{2 * (timing.a_vs_a or 0.0):.1%}"
            bars.append(Bar(f"{sizes} original", us["original"], f"{us['original']:.2f} us"))
            bars.append(Bar("port", us["port"], f"{us['port']:.2f} us, {ratio:.3f}x {spread}", mark=True))
    if bars:
        yield bar_chart(f"time on {facts.device or 'a GPU'}, cold L2 (the port hatched)", bars)
