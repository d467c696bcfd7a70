"""`porter eval`: score a model on the tasks that come with porter."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from porter import codes
from porter.commands.agent import add_model_options, key_of, session_of, settings_of, table
from porter.commands.options import Help, add_output_options, split_commas

DESCRIPTION = """\
Score a model on kernels that come with porter: 12 with a construct that the translator refuses, and 6 verified but slow
ports. A task succeeds when the verifier accepts the model's port, unseen seeds and shapes included. Without a GPU
"faster" means fewer instructions, memory sectors and bank conflicts on the emulator, which are counts, not times.

The set has been run with scripted models only, not with a hosted one: there are no scores to compare with.
"""
EPILOG = """\
examples:
  porter eval --list
  porter eval --model claude-opus-5-5 --budget-usd 0.50 -o eval
  porter eval fill
  porter eval goto_loop recursive_gcd
"""


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "eval",
        help="score a model on the tasks that come with porter",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="tasks by name, or fill, or optimise (default: all)")
    parser.add_argument("--list", action="store_true", help="list the tasks and exit")
    parser.add_argument("-o", dest="output", metavar="DIR", default="eval", help="folder for the ports (default: eval)")
    parser.add_argument("--arch", action="append", metavar="ARCH", help="target (default sm_90a)")
    add_model_options(parser.add_argument_group("the model"))
    add_output_options(parser)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from porter.agents.runs.evaluate import HEAD, choose, evaluate, total
    from porter.config import PortConfig, merge
    from porter.model import Diagnostic, PorterError

    tasks = choose(args.tasks)
    if args.list:
        print(table([(t.name, t.kind, t.about) for t in tasks], ("task", "kind", "about")))
        return 0
    settings = settings_of(args)
    key, missing = key_of(settings)
    if not key:
        raise PorterError(Diagnostic(codes.NO_MODEL_KEY, "there is no key for the model", help=missing))
    config = merge(PortConfig(), output=Path(args.output), arch=split_commas(args.arch) or ("sm_90a",))
    session = session_of(settings, key, args.color)
    scores = evaluate(tasks, config, settings, session, lambda score: session.say("  ".join(score.row)))
    if args.output_format == "json":
        from porter.report.console import print_json

        print_json({"schema": 1, "model": settings.model, "tasks": [s.to_json() for s in scores]})
    else:
        print(table([s.row for s in scores], HEAD))
        print(f"\n{settings.model}: {total(scores)}")
    return 0 if all(s.success for s in scores) else 1
