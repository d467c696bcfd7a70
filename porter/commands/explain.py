"""`porter explain PRT503`: the page of a diagnostic code."""

from __future__ import annotations

import argparse
from typing import Any

from porter.commands.options import Help


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "explain",
        help="explain a diagnostic code",
        description="Print the page of a diagnostic code, such as PRT503. Without a code: the list of all.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("code", nargs="?", metavar="CODE", help="PRTnnn, or just the number")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from porter.report.code_pages import page, titles

    if args.code is None:
        for code, title in titles().items():
            print(f"{code}  {title}")
    else:
        print(page(args.code), end="")
    return 0
