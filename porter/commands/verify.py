"""`porter verify`: verify ports that exist, as they are now, against the originals they were made from."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from porter.commands.options import Help, add_output_options, live_terminal


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "verify",
        help="verify ports again, after an edit for instance",
        description="Verify ports as they are now, edited or not. Source, case and options come from their .port.json;"
        " the answers are kept there.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="+", metavar="PORT", help="ports (.py), or folders of them")
    parser.add_argument("--case", metavar="FILE", help="another case than the recorded one")
    parser.add_argument("--thorough", action="store_true", default=None, help="every shape and distribution")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the inputs (default: fresh, and printed)")
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes (default: one per core)")
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from porter.config import load_config, merge
    from porter.pipeline import verify_files
    from porter.progress import watching
    from porter.report import console, print_run

    case = Path(args.case) if args.case else None
    config = merge(load_config(), case=case, thorough=args.thorough, seed=args.seed, jobs=args.jobs)
    with watching(console(sys.stderr, args.color), live_terminal()) as progress:
        report = verify_files([Path(p) for p in args.paths], config, progress)
    print_run(report, args.output_format, args.color)
    return report.exit_code
