"""`porter review`: read ports beside their CUDA, and decide region by region."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from typing import Any

from porter import codes
from porter.commands.options import Help, add_source_options, source_settings

EPILOG = """\
examples:
  porter review ported                          the ports of a folder, in the terminal
  porter review ported/rms_norm.py --plain      the same questions, line by line
  porter review ported --check                  exit 1 unless every region is accepted as it is (for CI)
  porter review ported --export review.html     side by side with verdicts, for a pull request
"""


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "review",
        help="read ports beside their CUDA, and decide region by region",
        description="Read ports beside their CUDA: which lines became which, who wrote them, what the verifier found."
        " Accept, reject\nor edit them region by region. Decisions are kept in .port.json. See docs/review.md.",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PORT", help="ports (.py), or folders of them (default: the output)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--plain", action="store_true", help="ask line by line, without a full-screen terminal")
    how.add_argument(
        "--check", action="store_true", help="do not ask; exit 1 unless every region is accepted as it is now"
    )
    how.add_argument("--export", metavar="FILE", help="write a static HTML page and exit")
    add_source_options(parser, "the original (what `porter port` was given)", kernel=False)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from porter.config import load_config, merge
    from porter.review.port.reviewed_port import load_all

    config = merge(
        load_config(),
        **source_settings(args),
    )
    paths = [Path(p) for p in args.paths] or [config.output]
    if args.check:
        from porter.review.plain import check

        return check(load_all(paths, config))
    if args.export:
        from porter.files.atomic import write_atomic, writing_failed
        from porter.review.page import page

        try:
            write_atomic(Path(args.export), page(load_all(paths, config)))
        except OSError as error:
            raise writing_failed(Path(args.export), error, "give --export another path") from error
        print(f"wrote {args.export}", file=sys.stderr)
        return 0
    if args.plain:
        from porter.review.plain import review_plain

        return review_plain(paths, config)
    return full_screen(paths, config, args.parser)


def full_screen(paths: list[Path], config: Any, parser: argparse.ArgumentParser) -> int:
    """The app; needs Textual and a terminal."""
    from porter.extras import install
    from porter.model import Diagnostic, PorterError
    from porter.review.port.reviewed_port import load_all

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        parser.error("standard input and output are not a terminal: use --plain, --check or --export")
    load_all(paths)  # what is wrong with the paths is said before the screen is taken
    try:
        from porter.review.app import ReviewApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        help_ = f"`{install('review')}`, or use --plain"
        raise PorterError(
            Diagnostic(codes.NO_TEXTUAL, "the review needs Textual, which is not installed", help=help_)
        ) from None
    app = ReviewApp(paths, config)
    gc.collect()
    gc.freeze()  # a full collection over all that is loaded takes longer than a key may
    return app.run() or 0
