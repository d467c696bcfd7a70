"""`porter verify`: verify ports that exist, as they are now, against originals, baselines and earlier revisions."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from porter.commands.options import Help, add_source_options, live_terminal, source_settings, split_commas
from porter.config import BACKENDS

FORMATS = ("full", "json", "junit", "sarif", "github")
EPILOG = """\
examples:
  porter verify ported                          again, and no worse than the recorded baseline
  porter verify ported -D USE_BF16 -I csrc      ... made with these flags, where [tool.porter] does not say so
  porter verify ported --update                 what they achieve now is the new baseline
  porter verify ported --against main           no worse than, and the same as, the ports on main
  porter verify ported --require performance    a machine without a GPU is an error
  porter verify ported --output-format github   annotations of a GitHub workflow
  porter verify ported --dsl 4.6.3,4.8.1 --bisect
"""


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "verify",
        help="verify ports again, and compare with what they achieved before",
        description="Verify ports as they are now, edited or not, and compare with what they achieved before. Source,"
        " case and\noptions in their .port.json count where this command or [tool.porter] says the same. Answers are"
        "\nkept there. See docs/verify.md.",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="+", metavar="PORT", help="ports (.py), or folders of them")
    what = parser.add_argument_group("what is compared")
    what.add_argument(
        "--against",
        metavar="WHAT",
        default="",
        help="original: only with the original kernel; recorded: also with the baseline, which must be there;"
        " REV: also with the ports of a git revision (default: also with the baseline where there is one)",
    )
    what.add_argument(
        "--update", action="store_true", help="record what passing ports achieve now as their new baseline"
    )
    what.add_argument(
        "--no-record", action="store_true", help="write nothing into .port.json, not even a first baseline"
    )
    what.add_argument(
        "--require",
        action="append",
        metavar="CHECK",
        help="exit 1 when CHECK is skipped (repeatable, or separated by commas)",
    )
    what.add_argument("--only-ports", action="store_true", help="skip files that are not ports (for hooks)")
    add_source_options(parser, "the original (what `porter port` was given; .port.json is not enough)", kernel=False)
    how = parser.add_argument_group("how")
    how.add_argument("--case", metavar="FILE", help="a case other than the recorded one")
    how.add_argument("--thorough", action="store_true", default=None, help="every shape and distribution")
    how.add_argument("--seed", type=int, metavar="N", help="seed of the inputs (default: fresh, and printed)")
    how.add_argument(
        "--backend",
        metavar="NAME",
        help=f"where kernels run: {', '.join(BACKENDS)}, gpu:1 (default: auto, a GPU where there is one)",
    )
    how.add_argument("--jobs", type=int, metavar="N", help="worker processes (default: one per core)")
    how.add_argument("--timeout", type=float, metavar="S", help="time limit per port in seconds (default: 300)")
    how.add_argument("--fresh", action="store_true", help="start over; by default an interrupted run is resumed")
    dsl = parser.add_argument_group("versions of CuTeDSL")
    dsl.add_argument(
        "--dsl",
        action="append",
        metavar="VERSION",
        help="compile with these versions of nvidia-cutlass-dsl, each installed into an environment of its own in the"
        " cache (repeatable, or separated by commas); prints a matrix, records nothing",
    )
    dsl.add_argument("--bisect", action="store_true", help="with --dsl: find the published version that broke a port")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output-format",
        choices=FORMATS,
        default="full",
        help='full: for people (default); json: one object with "schema": 1; junit, sarif: reports for CI systems;'
        " github: annotations",
    )
    output.add_argument("--html", metavar="FILE", help="also write a page with verdicts, errors and times")
    output.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="auto (default) honours NO_COLOR and pipes"
    )
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from porter.config import load_config, merge
    from porter.regression.all_ports import verify_ports
    from porter.report.console import console
    from porter.report.progress import watching

    config = merge(
        load_config(),
        **source_settings(args),
        case=Path(args.case) if args.case else None,
        thorough=args.thorough,
        seed=args.seed,
        jobs=args.jobs,
        backend=args.backend,
    )
    settings = settings_of(args)
    paths = [Path(p) for p in args.paths]
    if args.only_ports:
        from porter.pipeline.open_ports import is_port

        paths = [p for p in paths if is_port(p)]
        if not paths:
            return 0
    if args.dsl or args.bisect:
        return versions(args, config, settings)
    try:
        with watching(console(sys.stderr, args.color), live_terminal()) as progress:
            report = verify_ports(paths, config, settings, progress)
    except KeyboardInterrupt:
        print("interrupted; the same command resumes with the remaining ports", file=sys.stderr)
        return 130
    return finish(report, args)


def versions(args: argparse.Namespace, config: Any, settings: Any) -> int:
    """`--dsl`: the matrix of ports and versions."""
    from porter.regression.dsl_matrix import dsl_matrix, matrix_text, matrix_to_json
    from porter.report.console import console, print_diagnostics, print_json
    from porter.report.progress import watching

    asked = split_commas(args.dsl) or ()
    if not asked or (args.bisect and len(asked) < 2):
        args.parser.error("--bisect needs --dsl with at least two versions")
    if args.update or args.against or args.html or args.output_format not in ("full", "json"):
        args.parser.error(
            "--dsl takes --output-format full or json, and cannot be combined with --update, --against or --html"
        )
    err = console(sys.stderr, args.color)
    with watching(err, live_terminal()) as progress:
        found = dsl_matrix([Path(p) for p in args.paths], asked, config, settings, progress, args.bisect)
    if args.output_format == "json":
        print_json(matrix_to_json(found))
    else:
        print(matrix_text(found))
        print_diagnostics(tuple(found.diagnostics), err)
    return found.exit_code


def settings_of(args: argparse.Namespace) -> Any:
    """The settings that the flags ask for; ends with a usage error for flags that contradict each other."""
    from porter.regression.settings import TIMEOUT, Settings
    from porter.verify.run import CHECKS

    require = split_commas(args.require) or ()
    for check in require:
        if check not in (*CHECKS, "regression"):
            known = ", ".join((*CHECKS, "regression"))
            args.parser.error(f"--require: `{check}` is not a check; the checks are {known}")
    if args.timeout is not None and args.timeout <= 0:
        args.parser.error("--timeout: give a number of seconds above 0")
    if args.update and args.against:
        args.parser.error("--update records a new baseline; it cannot be compared with --against at the same time")
    if args.update and args.no_record:
        args.parser.error("--update and --no-record contradict each other")
    return Settings(args.against, args.update, require, args.timeout or TIMEOUT, args.fresh, not args.no_record)


def finish(report: Any, args: argparse.Namespace) -> int:
    """Write the outputs asked for and return the exit code."""
    from porter.report.console import console, print_diagnostics, print_run, worth_saying

    if args.html:
        from porter.files.atomic import write_atomic, writing_failed
        from porter.regression.page import page

        try:
            write_atomic(Path(args.html), page(report))
        except OSError as error:
            raise writing_failed(Path(args.html), error, "give --html another path") from error
    if args.output_format in ("full", "json"):
        print_run(report, args.output_format, args.color)
        return int(report.exit_code)
    module = import_module(f"porter.regression.{args.output_format}")
    sys.stdout.write(getattr(module, args.output_format)(report).rstrip("\n") + "\n")
    if args.output_format != "github":  # whose annotations are the messages
        print_diagnostics(worth_saying(report), console(sys.stderr, args.color))
    return int(report.exit_code)
