"""`porter patterns`: the rewrites the translator knows."""

from __future__ import annotations

import argparse
from typing import Any

from porter.commands.options import Help


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "patterns",
        help="list the rewrites the translator knows",
        description="List the rewrite patterns; with a NAME, show a kernel before and after.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="one pattern, by name")
    parser.add_argument(
        "--functions", action="store_true", help="the CUDA functions with a CuTeDSL equivalent, a row each"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from porter.catalogue.patterns import function_rows, pattern_line, pattern_page
    from porter.patterns.idioms.catalogue import all_patterns
    from porter.report.code_pages import named

    if args.functions:
        for cuda, dsl in function_rows():
            print(f"{cuda:<40}  {dsl}")
    elif args.name is None:
        width = max(len(p.name) for p in all_patterns())
        for p in all_patterns():
            print(pattern_line(p, width))
    else:
        table = {p.name: p for p in all_patterns()}
        print(pattern_page(named(args.name, table, "there is no pattern", "porter patterns")), end="")
    return 0
