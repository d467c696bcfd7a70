"""`porter port`: port .cu files, show one stage of it, or analyse folders without writing."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from porter.commands.agent import add_agent_options
from porter.commands.options import Help, add_output_options, add_source_options, live_terminal, source_settings

EPILOG = """\
examples:
  porter port reference_kernels/norm/rms_norm.cu -o ported
  porter port csrc/*.cu -I csrc/include -D USE_BF16 --arch sm_90a -o ported
  porter port csrc/ -p build
  porter port k.cu --instantiate 'k<__nv_bfloat16, 8>' --instantiate 'k<__half, 8>'
  porter port k.cu --emit py > k.py
  porter port --analyze third_party/
  porter port --agent k.cu --budget-usd 1
"""


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "port",
        help="port .cu files to CuTeDSL and verify them",
        description="Port the kernels of .cu files to CuTeDSL and verify each port against its original.",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="CUDA files, folders of them; none: all of -p")
    parser.add_argument("-o", dest="output", metavar="DIR", help="folder for the ports (default: ported)")
    add_source_options(parser)
    work = parser.add_argument_group("what to do")
    work.add_argument(
        "--case", metavar="FILE", help="the case to verify against (default: <name>.case.toml beside the source)"
    )
    work.add_argument(
        "--confirm-cases",
        action="store_true",
        default=None,
        help="you have read the cases that porter derived from the source (in the output folder), and they are right",
    )
    work.add_argument("--emit", choices=("ir", "plan", "py", "ptx"), help="print one stage on stdout and write nothing")
    work.add_argument(
        "--analyze", action="store_true", help="report what could be ported in FILEs and folders; write nothing"
    )
    work.add_argument(
        "--standalone", action="store_true", default=None, help="copy what the port uses of porter.corpus.lib into it"
    )
    work.add_argument(
        "--style",
        choices=("pointer", "tensor"),
        help="write kernels over pointers, as the source does (the default), or over tensors, where that verifies",
    )
    work.add_argument(
        "--explain-style",
        action="store_true",
        help="print what --style tensor lifts, a line per access, and what stops the rest; write nothing",
    )
    work.add_argument("--force", action="store_true", default=None, help="overwrite a port that was edited")
    work.add_argument(
        "--no-verify",
        dest="verify",
        action="store_false",
        default=None,
        help="write ports without verifying them, with a case or without; exit 0 then says nothing about correctness",
    )
    work.add_argument("--thorough", action="store_true", default=None, help="verify over every shape and distribution")
    work.add_argument(
        "--seed", type=int, metavar="N", help="seed of the verifier's inputs (default: fresh, and printed)"
    )
    work.add_argument(
        "--jobs", type=int, metavar="N", help="worker processes for files and compilations (default: one per core)"
    )
    work.add_argument(
        "--time-limit",
        type=float,
        default=20.0,
        metavar="S",
        help="with --analyze: time limit per kernel in seconds (default 20)",
    )
    work.add_argument(
        "--compile",
        action="store_true",
        help="with --analyze: also compile what has no hole (minutes for a large folder)",
    )
    work.add_argument(
        "--run",
        dest="run_too",
        action="store_true",
        help="with --analyze: also run original and port of what compiles on the emulator, one small launch with"
        " made-up arguments (about a minute per kernel); exit 1 when a port differs",
    )
    add_agent_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from porter.config import load_config, merge

    if not args.files and not args.build:
        args.parser.error("give at least one FILE, or -p")
    config = merge(
        load_config(),
        output=Path(args.output) if args.output else None,
        **source_settings(args),
        case=Path(args.case) if args.case else None,
        confirm_cases=args.confirm_cases,
        standalone=args.standalone,
        style=args.style,
        force=args.force,
        seed=args.seed,
        verify=args.verify,
        thorough=args.thorough,
        jobs=args.jobs,
    )
    if args.analyze:
        return analyze(args, config)
    if args.emit or args.explain_style:
        return emit(args, config)
    if args.agent or args.optimise or args.show_prompt:
        from porter.commands.agent import port_with_agent

        return port_with_agent(args, config)
    from porter.batch.port_files import port_all
    from porter.pipeline.compile_commands import files_of
    from porter.report.console import console, print_run
    from porter.report.progress import watching

    with watching(console(sys.stderr, args.color), live_terminal()) as progress:
        report = port_all(files_of([Path(f) for f in args.files], config), config, progress)
    print_run(report, args.output_format, args.color)
    return report.exit_code


def emit(args: argparse.Namespace, config: Any) -> int:
    from porter.pipeline.stages import show_stage
    from porter.report.console import console, print_diagnostics

    if args.emit and args.explain_style:
        args.parser.error("--emit and --explain-style print two things: give one of them")
    if len(args.files) != 1:
        args.parser.error(f"{'--emit' if args.emit else '--explain-style'} takes one FILE")
    if args.explain_style:
        config = replace(config, style="tensor")
    text, diagnostics, code = show_stage(Path(args.files[0]), config, args.emit or "style")
    sys.stdout.write(text)
    print_diagnostics(diagnostics, console(sys.stderr, args.color))
    return code


def analyze(args: argparse.Namespace, config: Any) -> int:
    from porter.batch.analysis import analysis_to_json, analyze_paths, print_analysis
    from porter.report.console import console, print_diagnostics, print_json

    err = console(sys.stderr, args.color)
    analysis = analyze_paths(
        [Path(f) for f in args.files],
        config,
        args.time_limit,
        lambda line: err.print(line, markup=False, highlight=False),
        args.compile,
        args.run_too,
    )
    if args.output_format == "json":
        print_json(analysis_to_json(analysis))
    else:
        print_analysis(analysis, console(sys.stdout, args.color))
        print_diagnostics(analysis.diagnostics, err)
    if any(k.outcome == "differs" for k in analysis.kernels):
        return 1
    return 0 if analysis.kernels else 2
