"""`porter patterns`: the rewrites the translator knows."""

from __future__ import annotations

import argparse
from typing import Any

from porter.commands.options import Help


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "patterns",
        help="list the rewrites the translator knows",
        description="List the rewrite patterns; with a NAME, show what it does before and after.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="one pattern, by name")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from porter.catalogue import pattern_line, pattern_page, patterns

    found = patterns()
    if args.name is None:
        width = max((len(p.name) for p in found), default=0)
        for p in found:
            print(pattern_line(p, width))
        return 0
    from porter.explain import named

    print(pattern_page(named(args.name, {p.name: p for p in found}, "pattern", "porter patterns")), end="")
    return 0
