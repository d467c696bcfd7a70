"""`porter tune`: times the choices that kernels of the corpus have on this GPU and writes its tuning table."""

from __future__ import annotations

import argparse
from typing import Any

from porter.commands.options import Help


def add(subparsers: Any) -> None:
    from porter.corpus.tune import add_arguments

    parser = subparsers.add_parser(
        "tune",
        help="find the best launch of the corpus's kernels on this GPU",
        description="Time every choice that kernels of the corpus have (threads of a row, rows in flight, ...) on this"
        " GPU, and write the best of each size to the package's tuning table of the device, with the versions that"
        " it was measured with. `python -m porter.corpus.tune` is the same and needs nothing else of porter.\n"
        "--model tunes only what an engine calls for the model of a config.json, at these sizes.\n"
        "Exit codes: 0 written (or listed, with --dry-run), 2 no GPU, or usage.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from porter.corpus import tune

    return tune.run(args)
