"""How a port is written: over pointers as the source does, or over tensors (`--style`).

The tensor form is made from the pointer form by porter.lift and is taken only where it passes every check, accesses
memory no more narrowly and uses no local memory that the pointer form does not. Else the pointer form is written, and
the report says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from porter import codes
from porter.config import PortConfig
from porter.model import Diagnostic, Severity, Status, Verdict
from porter.pipeline.drafts import compiled, drafted
from porter.pipeline.outputs import Translation
from porter.provenance.baseline import is_good

Verify = Callable[[Translation], tuple[Verdict, ...]]


def in_style(made: Translation, style: str) -> Translation:
    """The translation as `style` writes it; itself where there is nothing to rewrite."""
    from porter.lift import lift

    if style != "tensor" or made.style == style:
        return made
    module = lift(made.module, made.plan)
    return made if module.text == made.module.text else replace(made, module=module, style=style)


def verified_over_tensors(
    made: Translation, config: PortConfig, verify: Verify
) -> tuple[Translation, tuple[Verdict, ...], list[Diagnostic]]:
    """The port over tensors with its verdicts, if it is as good as the one over pointers; else that one, no verdicts,
    and a message with the reason."""
    lifted = in_style(made, "tensor")
    if lifted is made:
        return made, (), [_kept(made, "nothing in it could be lifted")]
    verdicts = verify(lifted)
    if not is_good(verdicts):
        bad = next((v for v in verdicts if v.status not in (Status.PASS, Status.SKIP)), None)
        why = f"over tensors it does not pass {bad.check}: {bad.detail}" if bad else "over tensors nothing ran it"
        return made, (), [_kept(made, why)]
    worse = _worse(made, lifted, config)
    return (made, (), [_kept(made, worse)]) if worse else (lifted, verdicts, [])


def _kept(made: Translation, why: str) -> Diagnostic:
    message = f"{made.info.name} is written over pointers: {why}"
    return Diagnostic(codes.NOT_IN_TENSOR_STYLE, message, made.info.span, Severity.NOTE)


def _worse(made: Translation, lifted: Translation, config: PortConfig) -> str:
    """What the compiled tensor form does worse than the pointer form at some instance; "" for nothing."""
    from porter.verify.checks.ptx_stats import ptx_stats

    stats = []
    for form in (made, lifted):
        with drafted(form.module.text, f"{form.plan.function}.py") as draft:
            results = compiled(draft, form.info, form.instances, config.arch, 1)
        stats.append([ptx_stats(r.ptx) if r.ok else None for r in results])
    for before, after in zip(*stats, strict=True):
        if before is None or after is None:
            continue
        if after.loads > before.loads or after.stores > before.stores:
            return (
                f"over tensors it would access memory in more pieces ({after.loads} loads and {after.stores} stores"
                f" for {before.loads} and {before.stores})"
            )
        if after.local_bytes > before.local_bytes:
            return f"over tensors it would need {after.local_bytes} bytes of local memory for {before.local_bytes}"
    return ""
