"""`porter new pattern|kernel NAME`: the files of a new pattern or reference kernel, from a template."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from porter.commands.options import Help


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "new",
        help="start a new pattern or reference kernel from a template",
        description="Create the files of a new pattern or reference kernel in this checkout; never overwrites.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("kind", choices=("pattern", "kernel"), help="what to create")
    parser.add_argument("name", metavar="NAME", help="lower_case; family/name for a kernel (default family: misc)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from porter.commands.scaffold import create

    for path in create(args.kind, args.name, Path.cwd()):
        print(path)
    return 0
