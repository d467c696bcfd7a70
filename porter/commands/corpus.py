"""`porter corpus list|show NAME`: the library that ports import, and the curated kernels."""

from __future__ import annotations

import argparse
from typing import Any

from porter.commands.options import Help


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "corpus",
        help="list and show the utility library and the curated kernels",
        description="List or show what porter.corpus holds: functions of porter.corpus.lib and curated kernels.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="all names with their first line", formatter_class=Help)
    listing.set_defaults(run=run_list)
    show = actions.add_parser("show", help="the source of one", formatter_class=Help)
    show.add_argument("name", metavar="NAME", help="as listed: a function, or module.function")
    show.set_defaults(run=run_show)


def run_list(args: argparse.Namespace) -> int:
    from porter.catalogue.patterns import corpus_entries

    module = ""
    for entry in corpus_entries():
        if entry.module != module:
            module = entry.module
            print(f"\n{module}" if entry is not None else "")
        print(f"  {entry.signature}")
        if entry.summary:
            print(f"      {entry.summary}")
    return 0


def run_show(args: argparse.Namespace) -> int:
    from porter.catalogue.patterns import corpus_entries
    from porter.report.code_pages import named

    table = {e.name: e for e in corpus_entries()} | {f"{e.module}.{e.name}": e for e in corpus_entries()}
    print(named(args.name, table, "the corpus has no", "porter corpus list").source, end="")
    return 0
