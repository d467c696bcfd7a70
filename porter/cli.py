"""The `porter` command: parses arguments, runs one subcommand, turns what went wrong into messages and exit codes.

0: every requested check passed and no hole is left. 1: a port was made but has holes or failed a check.
2: porter could not do its work. 130: Ctrl-C. stdout is the product, stderr the progress and the messages.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the commands take a moment to import: Ctrl-C meanwhile is caught in main
    import argparse

    from porter.model import Diagnostic
    from porter.source import Span


def build_parser() -> argparse.ArgumentParser:
    """The whole command line; docs/cli.md is generated from it."""
    import argparse

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
    )  # fmt: skip
    from porter.commands.options import Help
    from porter.provenance.record import tool_versions

    parser = argparse.ArgumentParser(
        prog="porter",
        description="Port CUDA kernels to CuTeDSL, verified against the original.",
        epilog="exit codes: 0 ported and verified; 1 a port has holes, failed a check, or waits for its case to be\n"
        "confirmed; 2 porter could not do its work; 130 interrupted",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"porter {tool_versions().get('porter', 'from source')}")
    subparsers = parser.add_subparsers(metavar="COMMAND", title="commands")
    for command in (port, verify, review, agent, eval, emulate, tune, build, doctor, explain, patterns, corpus, new):
        command.add(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises for what a user can do wrong.

    Without `argv` this is the program: the work is done in a process of its own (porter.process.supervise).
    """
    from porter.report.terminal import visible_output

    with visible_output():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    color = "auto"
    child = False
    try:
        if argv is None and sys.platform == "linux":
            from porter.process.supervise import released, supervised

            code = supervised(_mourn)
            if code is not None:
                return code
            child = True
            released()
        parser = build_parser()
        args = parser.parse_args(argv)
        if not hasattr(args, "run"):
            parser.print_help(sys.stderr)
            return 2
        color = getattr(args, "color", "auto")
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) is gone; python would complain again when it flushes stdout at exit.
        _forget_stdout()
        return 0
    except Exception as error:
        return _failed(error, color)
    finally:
        if child:
            from porter.process.supervise import leaving

            leaving()


def _failed(error: Exception, color: str) -> int:
    """Say what went wrong; the exit code."""
    from porter.model import PorterError
    from porter.report.internal_errors import internal_error, output_failed, traceback_of

    if isinstance(error, PorterError):
        _say(color, *error.diagnostics)
        return 2
    failed = output_failed(error)
    if failed is not None:
        _forget_stdout()
        _say(color, failed)
        return 2
    _say(color, internal_error(error, traceback_of(error)))
    return 2


def _mourn(number: int, doing: str, span: Span) -> None:
    from porter.report.internal_errors import ended_by

    _say("auto", ended_by(number, doing, span))


def _forget_stdout() -> None:
    """What could not be written is lost; nothing more is tried at exit."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)


def _say(color: str, *diagnostics: Diagnostic) -> None:
    from porter.report.console import console, print_diagnostics

    print_diagnostics(diagnostics, console(sys.stderr, color))


if __name__ == "__main__":
    sys.exit(main())
