"""How a port is written: over pointers as the source does, or over tensors (`--style`).

The tensor form is made from the pointer form by porter.lift and is taken only where it passes every check, accesses
memory no more narrowly, uses no local memory that the pointer form does not, and leaves room for as many blocks. Else
the pointer form is written, and the report says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from porter import codes
from porter.case.instances import instance_values
from porter.config import PortConfig
from porter.model import Diagnostic, Instance, Severity, Status, Verdict
from porter.pipeline.drafts import compiled, drafted
from porter.pipeline.outputs import Translation
from porter.provenance.baseline import is_good
from porter.wording import plural

Verify = Callable[[Translation], tuple[Verdict, ...]]


def in_style(made: Translation, style: str) -> Translation:
    """The translation as `style` writes it; itself where there is nothing to rewrite."""
    from porter.lift import lift

    if style != "tensor" or made.style == style:
        return made
    module = lift(made.module, made.plan)
    return made if module.text == made.module.text else replace(made, module=module, style=style)


def explained(made: Translation) -> str:
    """What was lifted and what stopped the rest, as text; a port with holes is not lifted."""
    from porter.lift.explain import explain, format_remarks

    if made.module.holes:
        return f"{made.info.name}: nothing is lifted before its holes are closed\n"
    return format_remarks(explain(made.module, made.plan), made.info.name)


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

    forms = []
    for form in (made, lifted):
        with drafted(form.module.text, f"{form.plan.function}.py") as draft:
            forms.append(compiled(draft, form.info, form.instances, config.arch, 1))
    asked = [i for i in made.instances for _ in config.arch]
    for instance, one, two in zip(asked, *forms, strict=True):
        if not one.ok or not two.ok:
            continue
        before, after = ptx_stats(one.ptx), ptx_stats(two.ptx)
        if after.loads > before.loads or after.stores > before.stores:
            return (
                f"over tensors it would access memory in more pieces ({after.loads} loads and {after.stores} stores"
                f" for {before.loads} and {before.stores})"
            )
        if after.local_bytes > before.local_bytes:
            return f"over tensors it would need {after.local_bytes} bytes of local memory for {before.local_bytes}"
        for threads in _block_sizes(made, instance):
            fewer, blocks = resident_blocks(two.registers, threads), resident_blocks(one.registers, threads)
            if fewer < blocks:
                return (
                    f"over tensors {two.registers} registers a thread for {one.registers} would leave room for"
                    f" {plural(fewer, 'block')} of {threads} threads a multiprocessor, not {blocks}"
                )
    return ""


def resident_blocks(registers: int, threads: int) -> int:
    """Blocks that a multiprocessor holds at once by their registers and threads: 65,536 registers, given to warps in
    units of 256, 2,048 threads, 32 blocks."""
    warps = -(-threads // 32)
    each = -(-registers * 32 // 256) * 256
    return min(32, 64 // max(warps, 1), 65536 // max(each * warps, 1))


def _block_sizes(made: Translation, instance: Instance) -> list[int]:
    """Threads of the blocks that an instance is launched with at the case's sizes."""
    if made.case is None:
        return []
    known = next((i for i in made.case.instances if i.instance == instance), None)
    if known is None:
        return []
    values = instance_values(made.info, instance)
    shapes = [made.case.launch_at(p, values) for p in made.case.instance_points(known, values)]
    return sorted({s.block[0] * s.block[1] * s.block[2] for s in shapes if not s.is_empty})
