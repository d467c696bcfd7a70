"""`porter doctor`: is everything here that porter needs, and how to get what is missing."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from porter.commands.options import Help, add_output_options


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="check that everything porter needs is installed",
        description="Check versions and presence of everything porter uses; exit 2 when something required is missing.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from porter.commands.installation import examination_to_json, examine, print_examination
    from porter.report.console import console, print_json

    findings = examine()
    if args.output_format == "json":
        print_json(examination_to_json(findings))
    else:
        print_examination(findings, console(sys.stdout, args.color))
    return 2 if any(f.required and not f.ok for f in findings) else 0
