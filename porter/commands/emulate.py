"""`porter emulate`: one kernel of a PTX file on the CPU, on the points of a case, with every access checked."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter import codes
from porter.commands.options import Help, add_output_options
from porter.wording import plural

if TYPE_CHECKING:
    from porter.verify.emulate_case import Emulation
    from porter.verify.emulator import Checks, Module

CHECKS = ("uninitialised", "shared-races", "global-races", "counts")
POINTS = 4
MOST_OF_A_PROGRAM = 1 << 30  # bytes of a file with a fat binary


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "emulate",
        help="run a kernel of a PTX file on the CPU, checked and counted",
        description="Run one kernel of a PTX file, or of a fat binary that holds PTX, on the CPU: buffers, scalars and"
        " launch come from a case. Prints violations, counts of what was executed, and what the buffers"
        " hold afterwards.\n"
        "Exit codes: 0 no violations, 1 violations, 2 unsupported PTX or wrong usage.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="PTX text, .fatbin, or an object or program with .nv_fatbin")
    parser.add_argument("--case", metavar="FILE", required=True, help="the case: buffers, scalars, launch")
    parser.add_argument("--entry", metavar="NAME", default="", help="the kernel, or a part of its name")
    parser.add_argument(
        "--args", metavar="A,B,...", default="", help="the case's names in the order of the kernel's parameters"
    )
    parser.add_argument(
        "--instance",
        type=int,
        metavar="N",
        help="which of the case's instances, from 0 (default: the one that the kernel's name belongs to)",
    )
    parser.add_argument(
        "--set", action="append", metavar="NAME=VALUE", default=[], help="a template value, where there is no source"
    )
    parser.add_argument(
        "--point",
        action="append",
        metavar="SIZE=N",
        default=[],
        help=f"fix a size of the case (repeatable); default: {POINTS} points over all sizes",
    )
    parser.add_argument("--scenario", metavar="NAME", default="normal", help="inputs: normal, zeros, outlier, ...")
    parser.add_argument("--seed", type=int, metavar="N", default=0, help="seed of the inputs and the choice of points")
    parser.add_argument(
        "--schedule", type=int, metavar="N", default=0, help="0: blocks in order; else a shuffle of blocks and atomics"
    )
    parser.add_argument("--backend", choices=("auto", "numpy", "llvm"), default="auto", help="default auto")
    parser.add_argument(
        "--checks", metavar="LIST", default="all", help=f"all (default), none, or some of {','.join(CHECKS)}"
    )
    parser.add_argument("--budget", type=int, metavar="N", default=None, help="maximum thread-instructions per launch")
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from porter.case.reader import load_case
    from porter.verify import emulate_case as on_case

    case = load_case(args.case)
    module = _module(Path(args.file))
    entry = on_case.choose_entry(module, case, args.entry, args.file)
    given = {n: on_case.template_value(v) for n, v in _pairs(args.set, "--set").items()}
    order = tuple(n.strip() for n in args.args.split(",") if n.strip())
    subject = on_case.make_subject(module, entry, case, args.instance, order, given)
    points = on_case.choose_points(subject, _pairs(args.point, "--point"), POINTS, args.seed)
    made = []
    for p in points:
        made.append(
            on_case.emulate(
                subject, p, args.scenario, args.seed, args.schedule, _checks(args.checks), args.backend, args.budget
            )
        )
        if made[-1] is not None and any(v.kind == "budget" for v in made[-1].result.violations):
            break  # it would be the same at the other points
    launches = [m for m in made if m is not None]
    exit_code = int(any(not m.result.ok for m in launches))
    if args.output_format == "json":
        from porter.report.console import print_json

        rows = [on_case.as_json(m) for m in launches]
        names = {"file": args.file, "case": args.case, "entry": entry, "seed": args.seed}
        print_json({"schema": 1, "exit_code": exit_code, **names, "launches": rows})
    else:
        print(entry)
        for m in launches:
            print("\n".join(_lines(m)))
        if len(launches) < len(made):
            print(f"{plural(len(made) - len(launches), 'point')} without a block to launch")
    return exit_code


def _module(path: Path) -> Module:
    """The PTX of a file. Raises PorterError PRT010 or PRT860."""
    from porter.model import Diagnostic, PorterError
    from porter.plain_files import read_plain
    from porter.source import Span
    from porter.verify import emulator as ptx
    from porter.verify.emulate_case import refusal
    from porter.verify.emulator.decode import fatbin

    try:
        data = read_plain(path, MOST_OF_A_PROGRAM)
        if fatbin.is_binary(data):
            images = fatbin.ptx_images(data)
            text = max(images, key=lambda i: i.arch).text
            print(f"PTX for sm_{max(i.arch for i in images)}, of {len(images)} in {path}", file=sys.stderr)
        else:
            text = data.decode("utf-8")
        return ptx.load(text)
    except ptx.PtxError as error:
        raise refusal(error, str(path)) from None
    except UnicodeDecodeError:
        message = f"{path} is neither text nor a fat binary"
        raise PorterError(Diagnostic(codes.PTX_CANNOT_RUN, message, Span(str(path), 0))) from None
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise PorterError(Diagnostic(codes.UNREADABLE_SOURCE, message, Span(str(path), 0))) from None


def _pairs(texts: list[str], option: str) -> dict[str, str]:
    """["a=1", "b=2,c=3"] -> names and texts. Raises PorterError PRT861."""
    from porter.model import Diagnostic, PorterError

    found = {}
    for part in (p for text in texts for p in text.split(",")):
        name, equals, value = (s.strip() for s in part.partition("="))
        if not equals or not name or not value or (option == "--point" and not value.isdigit()):
            raise PorterError(
                Diagnostic(codes.UNKNOWN_ARGUMENTS, f"`{part}` is not NAME=VALUE", help=f"as in {option} hidden=4096")
            )
        found[name] = value
    return found


def _checks(text: str) -> Checks:
    from porter.model import Diagnostic, PorterError
    from porter.verify.emulator import Checks

    chosen = {"all": set(CHECKS), "none": set()}.get(text, {c.strip() for c in text.split(",")})
    unknown = sorted(chosen - set(CHECKS))
    if unknown:
        help_ = f"all, none, or some of {', '.join(CHECKS)}"
        raise PorterError(Diagnostic(codes.UNKNOWN_ARGUMENTS, f"no check `{unknown[0]}`", help=help_))
    return Checks(
        uninitialised="uninitialised" in chosen, shared_races="shared-races" in chosen,
        global_races="global-races" in chosen, counts="counts" in chosen,
    )  # fmt: skip


def _lines(m: Emulation) -> list[str]:
    """A launch for people."""
    result, counts = m.result, m.result.counts
    grid, block = ("x".join(map(str, d)) for d in (m.shape.grid, m.shape.block))
    lines = ["", f"{m.point}", f"  grid {grid}, block {block}, {m.shape.smem} bytes of dynamic shared memory"]
    if counts:
        done = f"{plural(counts['thread_instructions'], 'thread-instruction')}, {plural(counts['barriers'], 'barrier')}"
        lines.append(f"  {done}, {result.seconds:.2f} s ({result.backend})")
        lines.append("  " + ", ".join(f"{kind} {n}" for kind, n in counts["by_kind"].items()))
    traffic = counts.get("traffic", {})
    for name in sorted({key.rsplit(".", 1)[0] for key in traffic}):
        sectors, ideal = traffic.get(f"{name}.sectors"), traffic.get(f"{name}.ideal_sectors")
        if sectors is not None:
            more = f" ({sectors / ideal:.2f} of the ideal {ideal})" if ideal else ""
            moved = f"{plural(sectors, 'sector')} of 32 bytes{more}"
        else:
            moved = plural(traffic[f"{name}.wavefronts"], "wavefront")
        lines.append(f"  {name}: {plural(traffic[f'{name}.accesses'], 'access')}, {moved}")
    for o in m.outputs:
        span = "no finite number" if o.mean is None else f"{o.low:.6g} .. {o.high:.6g}, mean {o.mean:.6g}"
        left = f", {o.not_written} not written" if o.not_written else ""
        lines.append(f"  {o.name}: {o.dtype}{list(o.shape)}, {span}, {o.not_finite} not finite{left}")
    if result.stdout:
        lines += ["  printed:", *("    " + line for line in result.stdout.splitlines())]
    lines += [f"  {v}" for v in result.violations] or ["  nothing wrong"]
    return lines
