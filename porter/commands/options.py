"""Options that several subcommands share, spelled once."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from porter.config import ARCHES, MATH, STANDARDS


class Help(argparse.RawDescriptionHelpFormatter):
    """Help text at a fixed width, so that the generated reference does not depend on the terminal."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=28, width=100)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output-format",
        choices=("full", "json"),
        default="full",
        help='full: for people (default); json: one object on stdout, with "schema": 1',
    )
    group.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="auto (default) honours NO_COLOR and pipes"
    )


def add_source_options(parser: argparse.ArgumentParser, title: str = "reading the source", kernel: bool = True) -> None:
    """-I, -D, -std, --instantiate, --arch, and --kernel unless the kernels are known."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "-I", dest="include", action="append", metavar="DIR", help="search DIR for includes (repeatable)"
    )
    group.add_argument("-D", dest="define", action="append", metavar="NAME[=VALUE]", help="define a macro (repeatable)")
    group.add_argument(
        "-std", dest="std", metavar="STD", choices=STANDARDS, help=f"{', '.join(STANDARDS)} (default c++17)"
    )
    group.add_argument(
        "-p",
        dest="build",
        metavar="DIR",
        help="take include folders, macros, the standard and rounding of each file from DIR/compile_commands.json",
    )
    group.add_argument(
        "-include", dest="pre_include", action="append", metavar="FILE", help="include FILE first (repeatable)"
    )
    group.add_argument(
        "--math",
        action="append",
        metavar="FLAG",
        help=f"how nvcc rounds in the original, repeatable, or separated by commas: {', '.join(MATH)}",
    )
    if kernel:
        group.add_argument(
            "--kernel", action="append", metavar="NAME", help="only this kernel of the file (repeatable; default: all)"
        )
    group.add_argument(
        "--instantiate",
        action="append",
        metavar="'K<ARGS>'",
        help="template arguments to port for, such as 'rms_norm_kernel<__nv_bfloat16, 8>' (repeatable)",
    )
    group.add_argument(
        "--arch",
        action="append",
        metavar="ARCH",
        help=f"target, repeatable, or separated by commas: {', '.join(ARCHES)} (default sm_90a,sm_100a)",
    )


def source_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What the options of `add_source_options` set in porter.config.PortConfig."""
    return {
        "include": tuple(args.include or ()),
        "define": tuple(args.define or ()),
        "std": args.std,
        "build": Path(args.build) if args.build else None,
        "pre_include": tuple(args.pre_include or ()),
        "math": split_commas(args.math),
        "arch": split_commas(args.arch),
        "kernel": split_commas(getattr(args, "kernel", None)),
        "instantiate": tuple(args.instantiate or ()),
    }


def split_commas(values: list[str] | None) -> tuple[str, ...] | None:
    """['sm_90a,sm_100a', 'sm_80'] -> ('sm_90a', 'sm_100a', 'sm_80'), without repeats; None stays None."""
    if values is None:
        return None
    return tuple(dict.fromkeys(part.strip() for value in values for part in value.split(",") if part.strip()))


def live_terminal() -> bool:
    """Whether progress may redraw: stderr is a terminal that can."""
    import os

    return sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb"
