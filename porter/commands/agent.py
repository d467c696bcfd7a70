"""`porter agent`: resume and list runs; and the options and output that `porter port --agent` shares with it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter.commands.options import Help, add_output_options, live_terminal
from porter.model import Diagnostic, PorterError

if TYPE_CHECKING:
    from porter.agents.runs.session import Result, Session, Task
    from porter.agents.settings import AgentSettings
    from porter.config import PortConfig

EPILOG = """\
examples:
  porter agent list
  porter agent resume 20261129-180912-rms_norm-3f2a
"""


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "agent",
        help="resume and list runs of the agent",
        description="Runs of `porter port --agent` are recorded step by step and can be resumed after an interruption.",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parts = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    resume = parts.add_parser(
        "resume",
        help="resume interrupted runs",
        description="Resume where the record of a run, or of each run of a batch, ends. Recorded replies are not "
        "requested again; a finished run only writes its result again.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    resume.add_argument("runs", nargs="+", metavar="RUN", help="id or folder of a run or of a batch")
    resume.add_argument("--jobs", type=int, default=1, metavar="N", help="runs in parallel (default 1)")
    add_output_options(resume)
    resume.set_defaults(run=run_resume, parser=resume)
    listing = parts.add_parser(
        "list", help="list runs, latest first", description="List runs, latest first.", formatter_class=Help
    )
    listing.set_defaults(run=run_list, parser=listing)


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the agent", "nothing is sent without --agent or --optimise")
    group.add_argument(
        "--agent", action="store_true", help="have a model fill holes and repair what fails; the verifier decides"
    )
    group.add_argument("--optimise", action="store_true", help="have a model make verified ports faster")
    group.add_argument(
        "--show-prompt",
        action="store_true",
        help="print what --agent would send first (as JSON: the exact bytes), and send nothing",
    )
    add_model_options(group)


def add_model_options(group: Any) -> None:
    group.add_argument("--model", metavar="NAME", help="the model (default claude-opus-5-5)")
    group.add_argument("--base-url", metavar="URL", help="where it is served (default: the provider's own)")
    group.add_argument("--budget-usd", metavar="USD", help="maximum cost per kernel in USD, or none (default 2.00)")
    group.add_argument("--budget-tokens", type=int, metavar="N", help="maximum tokens per kernel (default: no limit)")
    group.add_argument("--attempts", type=int, metavar="N", help="maximum candidates verified per kernel (default 12)")
    group.add_argument(
        "--candidates", type=int, metavar="N", help="make N independent attempts in parallel, keep the best (default 1)"
    )
    group.add_argument("--budget-seconds", type=float, metavar="S", help="maximum seconds per kernel (default 1800)")


def settings_of(args: argparse.Namespace) -> AgentSettings:
    from porter.agents.settings import load_settings

    return load_settings(
        model=args.model,
        base_url=args.base_url,
        usd=args.budget_usd,
        tokens=args.budget_tokens,
        attempts=args.attempts,
        seconds=args.budget_seconds,
        candidates=args.candidates,
    )


def port_with_agent(args: argparse.Namespace, config: PortConfig) -> int:
    """`porter port --agent`, `--optimise` and `--show-prompt`."""
    from porter.agents.runs.session import find_files, improve_files
    from porter.batch.port_files import port_all
    from porter.report.console import console, print_diagnostics, print_run
    from porter.report.progress import watching

    if not config.verify:
        args.parser.error("--agent needs the verifier: remove --no-verify")
    settings = settings_of(args)
    files = find_files([Path(f) for f in args.files])
    modes = [mode for mode, asked in ((False, args.agent or not args.optimise), (True, args.optimise)) if asked]
    if args.show_prompt:
        from porter.agents.prompts import as_text
        from porter.agents.runs.prompt_preview import prompts_of

        shown, refused = False, list[PorterError]()
        for url, body in prompts_of(files, config, settings, modes, refused.append):
            sys.stdout.write(body.decode() + "\n" if args.output_format == "json" else as_text(url, body))
            shown = True
        print_diagnostics(tuple(d for error in refused for d in error.diagnostics), console(sys.stderr, args.color))
        if not shown and not refused:
            print("nothing would be sent: no kernel with a case needs the agent", file=sys.stderr)
        return 2 if refused else 0
    key, missing = key_of(settings)
    err = console(sys.stderr, args.color)
    if not key:
        with watching(err, live_terminal()) as progress:
            report = port_all(files, config, progress)
        print_run(report, args.output_format, args.color)
        print(f"the agent was not asked: {missing}", file=sys.stderr)
        return report.exit_code
    session = session_of(settings, key, args.color)
    with watching(err, live_terminal()) as progress:
        report, results = improve_files(files, config, settings, session, modes, progress)
    if args.output_format == "json":
        from porter.report.console import print_json, report_to_json

        print_json(report_to_json(report) | {"agent": [r.to_json() for r in results]})
    else:
        print_run(report, args.output_format, args.color)
        print_results(results)
    return report.exit_code


def key_of(settings: AgentSettings) -> tuple[str, str]:
    """(the key, "" when there is none; what to do then)."""
    from porter.agents.providers import key_variable
    from porter.agents.settings import find_key

    variable = key_variable(settings.provider)
    ways = [f"set {variable}"] if variable else []
    return find_key(settings, variable), ", or ".join([*ways, "api_key_command in [tool.porter.agent]"])


def session_of(settings: AgentSettings, key: str, color: str) -> Session:
    from porter.agents.runs.session import connect_session
    from porter.report.console import console

    err = console(sys.stderr, color)
    return connect_session(settings, key, lambda line: err.print(line, markup=False, highlight=False))


def print_results(results: Sequence[Result]) -> None:
    """A row for each run, then what it ended with, and what no check has answered."""
    from porter.agents.runs.session import not_verified

    if not results:
        print("the agent had nothing to do")
        return
    print(table([row_of(r) for r in results]))
    for r in results:
        if r.outcome:
            print(f"\n{r.task.kernel}: {r.outcome.message}")
            for kept in r.outcome.kept:
                print(f"  {kept}")
            for line in not_verified(r.outcome):
                print(f"  not verified: {line}")
            for number, o in enumerate(r.outcome.candidates, 1):
                print(f"  candidate {number}: {o.state}, {o.cost}: {o.message}")
        for d in r.error:
            print(f"\n{r.task.kernel}: {d.code} {d.message}" + (f"\n  {d.help}" if d.help else ""))
        print(f"  record: {r.task.folder.path}")


HEAD = ("kernel", "state", "attempts", "tokens", "cost")


def row_of(result: Result) -> tuple[str, ...]:
    if result.outcome is None:
        return (result.task.kernel, "failed", "", "", "")
    spent = result.outcome.spent
    return (
        result.task.kernel, result.outcome.state, str(spent.attempts), str(spent.usage.total), result.outcome.cost
    )  # fmt: skip


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = HEAD) -> str:
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)]
    return "\n".join(lines)


def run_resume(args: argparse.Namespace) -> int:
    from porter.agents.runs.session import run_tasks
    from porter.agents.settings import load_settings

    settings = load_settings()
    tasks, refused = tasks_of(args.runs, settings.runs)
    groups: dict[tuple[str, str, float], list[Task]] = {}  # by who is asked: each run's own server
    for task in tasks:
        own = task.folder.settings
        groups.setdefault((own.provider, own.base_url, own.timeout), []).append(task)
    results: list[Result] = []
    for group in groups.values():
        own = replace(group[0].folder.settings, api_key_command=settings.api_key_command)
        results += run_tasks(group, session_of(own, key_of(own)[0], args.color), args.jobs)
    if args.output_format == "json":
        from porter.provenance.json import diagnostic_to_json
        from porter.report.console import print_json

        messages = [diagnostic_to_json(d) for d in refused]
        print_json({"schema": 1, "diagnostics": messages, "agent": [r.to_json() for r in results]})
    else:
        from porter.report.console import console, print_diagnostics

        if results:
            print_results(results)
        print_diagnostics(tuple(refused), console(sys.stderr, args.color))
    if refused or any(r.error for r in results):
        return 2
    return 0 if all(r.outcome and r.outcome.good for r in results) else 1


def tasks_of(names: Sequence[str], root: Path) -> tuple[list[Task], list[Diagnostic]]:
    """The tasks of runs and batches, and why others cannot be resumed: one of a batch does not hold up the rest."""
    from porter.agents.runs.run_store import find_runs, read_run
    from porter.agents.runs.session import resume_task

    tasks: list[Task] = []
    refused: list[Diagnostic] = []
    for path in [p for name in names for p in find_runs(name, root)]:
        try:
            tasks.append(resume_task(read_run(path)))
        except PorterError as error:
            refused += error.diagnostics
    return tasks, refused


def run_list(args: argparse.Namespace) -> int:
    from porter.agents.settings import load_settings

    root = load_settings().runs
    for path in sorted((p for p in root.iterdir() if p.is_dir()), reverse=True) if root.is_dir() else ():
        print(f"{path.name}  {'batch' if (path / 'batch.json').is_file() else ending_of(path)}")
    return 0


def ending_of(run: Path) -> str:
    """What a run came to and cost, for a person."""
    import json

    try:
        value = json.loads((run / "result.json").read_text(encoding="utf-8"))
        return f"{value['state']}  {value['cost']}"
    except FileNotFoundError:
        return "not finished"
    except (OSError, ValueError, KeyError, TypeError):
        return "result.json cannot be read"
