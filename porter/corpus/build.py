"""Ahead-of-time builds: compiles the kernels of a list of configurations into the cache, without a GPU.

`python -m porter.corpus.build configurations.json --arch sm_90a --sms 132`. A service starts with these in its image.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from porter.corpus.configurations import arguments
from porter.corpus.models import options
from porter.corpus.runtime.arch import device_index
from porter.corpus.runtime.device import Device, device_of_index
from porter.corpus.runtime.ops import OPS, Unsupported
from porter.corpus.runtime.specialisation import Specialisation, compiled, loaded


def plans(configuration: Mapping[str, Any], device: Device) -> Iterable[Specialisation]:
    """The kernels of one configuration: {"op": name, "args": {...}}, tensors as text, and "T" in a text replaced by
    each number of "tokens". Raises ValueError for a configuration that the op refuses."""
    for tokens in configuration.get("tokens", [0]):
        given = arguments(configuration, tokens)
        try:
            plan = OPS[configuration["op"]].plan(device, *given)
        except Unsupported:
            continue  # the fallback runs: nothing to build
        if plan is not None:
            yield plan[0]


def workload_plans(names: Sequence[str], tokens: Sequence[int], device: Device) -> Iterable[Specialisation]:
    """The kernels of the sizes that engines use, in bfloat16."""
    import torch

    from porter.corpus.ops.workloads import WORKLOADS

    for name in names or WORKLOADS:
        for dims in WORKLOADS[name].dims:
            for count in tokens:
                plan = OPS[name].plan(device, *WORKLOADS[name].make(count, torch.bfloat16, "meta", **dims))
                if plan is not None:
                    yield plan[0]


def build(kernels: Iterable[Specialisation], arch: str, jobs: int) -> tuple[int, list[str]]:
    """Compile into the cache in `jobs` processes; (how many kernels there are, what failed)."""
    todo = [(k, arch) for k in dict.fromkeys(kernels)]
    if jobs <= 1 or len(todo) <= 1:
        failures = [_compile(each) for each in todo]
    else:
        with multiprocessing.get_context("spawn").Pool(min(jobs, len(todo))) as pool:
            failures = pool.map(_compile, todo, chunksize=4)
    return len(todo), [f for f in failures if f]


def _compile(key: tuple[Specialisation, str]) -> str:
    try:
        compiled(*key)
        return ""
    except Exception as error:
        return f"{key[0]}: {type(error).__name__}: {error}"


def warm_up(configurations: Iterable[Mapping[str, Any]], device: Any = None, jobs: int = 1) -> int:
    """Compile what is missing and load all of it, so that first calls of this process neither compile nor read files.

    `configurations` as for `porter build`; `device` a torch device, its number, None for the current one, or a made-up
    Device. More than one of `jobs` start processes of their own. Returns how many kernels there are. Raises ValueError
    for a configuration that its op refuses, RuntimeError for a kernel that does not compile.
    """
    found = device if isinstance(device, Device) else device_of_index(device_index(device))
    kernels = list(dict.fromkeys(kernel for each in configurations for kernel in plans(each, found)))
    _, failures = build(kernels, found.arch, jobs)
    if failures:
        raise RuntimeError(failures[0])
    for kernel in kernels:
        loaded(kernel, found.arch)
    return len(kernels)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of ahead-of-time builds; returns its exit code."""
    parser = argparse.ArgumentParser(prog="porter build", description=(__doc__ or "").split("\n")[0])
    add_arguments(parser)
    return run(parser.parse_args(argv))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "configurations", nargs="?", type=Path,
        help="JSON list of {op, args, tokens}; default: the sizes that engines use, of every op",
    )  # fmt: skip
    parser.add_argument("--op", action="append", default=[], help="without a list: this op only (may be repeated)")
    parser.add_argument("--arch", default="sm_90a", help="architecture to compile for (default: %(default)s)")
    parser.add_argument("--sms", type=int, default=132, help="SMs of the device (default: %(default)s)")
    parser.add_argument("--device", default="", help="name of the device, for its tuning table")
    parser.add_argument("--jobs", type=int, help="compile processes (default: one per core)")
    options.add_arguments(parser, "compile")


def run(args: argparse.Namespace) -> int:
    """Build what the arguments say; 0: everything compiled, 1: something did not, 2: wrong configurations."""
    device, start = Device(args.arch, args.sms, args.device), time.monotonic()
    try:
        options.check(args, None if args.configurations is None else "a list")
        if args.model is not None:
            found = options.calls(args, args.arch)
            listed = [(call, list(dict.fromkeys(plans(call, device)))) for call in found.calls]
            if args.dry_run:
                options.show(args, found, {"kernels": [len(made) for _, made in listed]})
                return 0
            kernels = [kernel for _, made in listed for kernel in made]
        elif args.configurations is None:
            import porter.corpus.ops  # noqa: F401 (declares them)

            kernels = list(workload_plans(args.op, (1, 16, 128, 1024, 8192), device))
        else:
            given = json.loads(args.configurations.read_text())
            given = given.get("calls", given) if isinstance(given, dict) else given
            kernels = [kernel for each in given for kernel in plans(each, device)]
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        print(f"porter build: {error}", file=sys.stderr)
        return 2
    count, failures = build(kernels, args.arch, args.jobs or os.cpu_count() or 1)
    for failure in failures:
        print(failure, file=sys.stderr)
    seconds = time.monotonic() - start
    if args.json:
        found_all = {"kernels": count, "failed": failures, "arch": args.arch, "seconds": round(seconds, 3)}
        print(json.dumps(found_all if args.model is None else {**options.as_json(found), **found_all}, indent=1))
    else:
        print(f"{count - len(failures)} of {count} kernels for {args.arch} in {seconds:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
