"""The `porter` command: parses arguments, runs one subcommand, turns what went wrong into messages and exit codes.

0: every requested check passed and no hole is left. 1: a port was made but has holes or failed a check.
2: porter could not do its work. 130: Ctrl-C. stdout is the product, stderr the progress and the messages.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from porter.commands import (
    agent,
    build,
    corpus,
    doctor,
    emulate,
    eval,
    explain,
    new,
    patterns,
    port,
    review,
    tune,
    verify,
)
from porter.commands.options import Help
from porter.model import Diagnostic, PorterError
from porter.provenance.record import tool_versions

COMMANDS = (port, verify, review, agent, eval, emulate, tune, build, doctor, explain, patterns, corpus, new)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line; docs/cli.md is generated from it."""
    parser = argparse.ArgumentParser(
        prog="porter",
        description="Port CUDA kernels to CuTeDSL, verified against the original.",
        epilog="exit codes: 0 ported and verified; 1 a port has holes or failed a check;\n"
        "2 porter could not do its work; 130 interrupted",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"porter {tool_versions().get('porter', 'from source')}")
    subparsers = parser.add_subparsers(metavar="COMMAND", title="commands")
    for command in COMMANDS:
        command.add(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises for what a user can do wrong."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if not hasattr(args, "run"):
        parser.print_help(sys.stderr)
        return 2
    color = getattr(args, "color", "auto")
    try:
        return int(args.run(args))
    except PorterError as error:
        _say(color, *error.diagnostics)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) is gone; python would complain again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from porter.report.internal_errors import internal_error

        _say(color, internal_error(error, traceback.format_exc()))
        return 2


def _say(color: str, *diagnostics: Diagnostic) -> None:
    from porter.report.console import console, print_diagnostics

    print_diagnostics(diagnostics, console(sys.stderr, color))


if __name__ == "__main__":
    sys.exit(main())
