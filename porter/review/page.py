"""`--export`: ports side by side with their CUDA, decisions and verdicts, on a page that needs no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from porter.pipeline.outputs import now
from porter.report.terminal import visible
from porter.review.descriptions import (
    CHECK_SIGN,
    SIGN,
    describe_assumptions,
    describe_author,
    describe_decision,
    describe_verdicts,
    region_location,
)
from porter.review.port.regions import Region
from porter.review.port.reviewed_port import ReviewedPort
from porter.wording import plural

STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
table.checks { width: auto; table-layout: auto; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
pre { margin: 0; font: 12.5px/1.4 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.n { opacity: .65; user-select: none; } caption, .about { text-align: left; font-size: 13px; }
tr.head th { border-top: 2px solid var(--line); border-bottom: 0; padding-top: .6rem; }
tr.accepted th::before { content: "✓ accepted "; } tr.rejected th::before { content: "✗ rejected "; }
tr.stale th::before { content: "~ stale "; } tr.hole th::before { content: "? hole "; }
tr.open th::before { content: "· open "; }
""".strip()


def page(ports: Sequence[ReviewedPort]) -> str:
    """The whole HTML document."""
    complete = sum(p.complete for p in ports)
    summary = f"{complete} of {plural(len(ports), 'port')} accepted in full"
    body = ["<h1>porter review</h1>", f"<p>{summary}; {escape(now())}</p>", "<ul>"]
    for n, p in enumerate(ports):
        about = f"{p.accepted} of {plural(len(p.regions), 'region')} accepted, {plural(len(p.holes), 'hole')}"
        body.append(f'<li><a href="#p{n}">{escape(str(p.path))}</a>: {about}</li>')
    body.append("</ul>")
    body += [row for n, p in enumerate(ports) for row in _port(p, n)]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>porter review</title>'
    head += f"<style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body></html>\n"


def _port(p: ReviewedPort, number: int) -> Iterator[str]:
    yield f'<h2 id="p{number}">{escape(p.name)}</h2>'
    yield f"<p>{escape(str(p.cuda_path))} → {escape(str(p.path))}</p>"
    for fault in p.faults:
        yield f"<p><strong>{escape(fault.code)} {escape(fault.message)}</strong> {escape(fault.help)}</p>"
    about = "" if p.verified else "<p>The port was edited after these verdicts.</p>"
    rows = "".join(
        f'<tr><th scope="row">{escape(v.check)}</th><td>{CHECK_SIGN[v.status]} {v.status.value}</td>'
        f"<td>{escape(v.detail)}</td></tr>"
        for v in p.verdicts
    )
    yield about + f'<table class="checks"><tbody>{rows}</tbody></table>' if rows else "<p>Not verified.</p>"
    yield '<table><thead><tr><th scope="col">CUDA</th><th scope="col">CuTeDSL</th></tr></thead><tbody>'
    for region in p.regions:
        yield from _region(p, region)
    yield "</tbody></table>"


def _region(p: ReviewedPort, region: Region) -> Iterator[str]:
    state = p.state(region)
    title = f"{region_location(p, region)}  {region.kind}"
    about = [escape(describe_author(p, region))]
    words = describe_decision(p, region)
    about += [
        escape(row)
        for row in ([words] if words else []) + describe_verdicts(p, region) + describe_assumptions(p, region)
    ]
    yield (
        f'<tr class="head {state}"><th colspan="2" scope="rowgroup" aria-label="{SIGN[state]} {state}">{escape(title)}'
        f'<div class="about">{"<br>".join(about)}</div></th></tr>'
    )
    cuda = _lines(p.cuda_lines, p.cuda_now(region))
    for file, _ in region.elsewhere:
        cuda += f'<div class="about">{escape(Path(file).name)}</div>'
        cuda += _lines(p.headers[file], p.lines_in(region, file))
    port = _lines(p.port_lines, range(region.first, region.last + 1))
    yield f"<tr><td>{cuda}</td><td>{port}</td></tr>"


def _lines(lines: Sequence[str], numbers: Sequence[int]) -> str:
    rows = []
    for at, n in enumerate(numbers):
        if at and numbers[at - 1] != n - 1:
            rows.append('<span class="n">      ⋮</span>')
        rows.append(f'<span class="n">{n:5} </span>{escape(visible(lines[n - 1]))}')
    return f"<pre>{chr(10).join(rows)}</pre>"
