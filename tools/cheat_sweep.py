"""Cheats put into the ports of the reference kernels: does the check that is meant for each catch it?

    python -m tools.cheat_sweep --work DIR [--only KERNEL ...] [--cheat NAME ...]
    python -m tools.cheat_sweep --work DIR --write     # bench/results/cheats.json, docs/verifier.md "Cheats"

What is read is read for every kernel, and torch-facing functions are called for every kernel; what has to be run, for
ten kernels of all families, with fresh inputs. Rows are kept in DIR, and made again only when the port has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from porter.model import Status
from tests.verify.checks.cheats.catalogue import HONESTY, Cheat
from tests.verify.checks.cheats.entry_faults import ENTRY
from tests.verify.checks.cheats.places import FEW
from tests.verify.checks.cheats.subjects import ROOT, RUN, Subject, called, knows_the_seed, read, run, sources, subject
from tests.verify.checks.cheats.values import CHEATS
from tools.kept_lines import KeptRows

RESULT = ROOT / "bench" / "results" / "cheats.json"
PAGE = ROOT / "docs" / "verifier.md"
SEED = "knows-the-seed"
SEED_WHAT = "right for the inputs of one seed, which it knows, zeros for others"
KNOWN_SEED = 20261129
BUDGET = 600.0  # seconds for all launches: a busy machine is no excuse


def rows(of: Subject, names: list[str], work: Path) -> Iterator[dict[str, Any]]:
    """One row a cheat that applies to the kernel."""
    for cheat in CHEATS.values():
        if names and cheat.name not in names:
            continue
        if cheat.check not in (HONESTY, ENTRY) and of.name not in FEW.get(cheat.name, RUN):
            continue
        made = cheat.change(of.port, of.case)
        if made is not None:
            yield judged(of, cheat, made.text, work)
    if of.name in RUN and (not names or SEED in names):
        text = knows_the_seed(of, work / "spy", KNOWN_SEED)
        if text is not None:
            fooled = failing(of, text, work / SEED, KNOWN_SEED)[0]
            caught, said = failing(of, text, work / SEED, None)
            yield row(of, SEED, "numerics", text, caught, said) | {"with_its_seed": fooled}


def judged(of: Subject, cheat: Cheat, text: str, work: Path) -> dict[str, Any]:
    if cheat.check == HONESTY:
        found = [d for d in read(of, text) if cheat.message in d.message]
        return row(of, cheat.name, cheat.check, text, [HONESTY] if found else [], found[0].message if found else "")
    if cheat.check == ENTRY:
        verdict = called(of, text, work / cheat.name, (0,))  # what an instance shows, the next does too
        said = " ".join(d.message for d in verdict.diagnostics)
        meant = verdict.status is Status.FAIL and cheat.message in said
        return row(of, cheat.name, ENTRY, text, [ENTRY] if meant else [], said)
    caught, said = failing(of, text, work / cheat.name, None)
    return row(of, cheat.name, cheat.check, text, caught, said)


def failing(of: Subject, text: str, folder: Path, seed: int | None) -> tuple[list[str], str]:
    """The checks that fail, and the first one's words."""
    failed = [v for v in run(of, text, folder, seed, explain=False, budget=BUDGET) if v.status is Status.FAIL]
    return [v.check for v in failed], failed[0].detail if failed else ""


def row(of: Subject, name: str, check: str, text: str, caught: list[str], said: str) -> dict[str, Any]:
    return {
        "kernel": of.name, "cheat": name, "meant": check, "caught_by": caught, "said": said[:200],
        "digest": hashlib.sha256(text.encode()).hexdigest()[:12],
    }  # fmt: skip


def kept(work: Path) -> KeptRows:
    return KeptRows(work / "cheats.jsonl", lambda row: (row["cheat"], row["kernel"]))


def sweep(args: argparse.Namespace) -> int:
    store = kept(args.work)
    survivors = 0
    for path in sources():
        if args.only and path.stem not in args.only:
            continue
        for found in rows(subject(path.stem), args.cheat, args.work):
            caught = found["meant"] in found["caught_by"]
            survivors += not caught
            store.add(found)
            if not caught or found["meant"] != HONESTY:
                print(
                    f"{found['kernel']} {found['cheat']}: {found['caught_by'] or 'SURVIVED'} {found['said']}",
                    flush=True,
                )
    return int(survivors > 0)


def collected(work: Path) -> list[dict[str, Any]]:
    """The last row of each cheat and kernel."""
    order = [*CHEATS, SEED]
    return sorted(kept(work).rows.values(), key=lambda r: (order.index(r["cheat"]), r["kernel"]))


def page(found: list[dict[str, Any]]) -> str:
    """The section "Cheats" of docs/verifier.md."""
    caught = sum(r["meant"] in r["caught_by"] for r in found)
    kernels = len({r["kernel"] for r in found})
    lines = [
        "## Cheats",
        "",
        f"Ports that cheat, made of the true ports of {kernels} reference kernels by `tests/verify/checks/cheats`,"
        " judged by "
        f"`python -m tools.cheat_sweep`: {caught} of {len(found)} are caught by the check that is meant for them "
        "(bench/results/cheats.json). What is in the host's code is read, or called with stand-ins for tensors; what "
        "is in the kernel is run in the emulator, with fresh inputs.",
        "",
        "| cheat | what it does | check | caught |",
        "|---|---|---|---|",
    ]
    for name in [*CHEATS, SEED]:
        mine = [r for r in found if r["cheat"] == name]
        if mine:
            what = CHEATS[name].what if name in CHEATS else SEED_WHAT
            good = sum(r["meant"] in r["caught_by"] for r in mine)
            lines.append(f"| {name} | {what} | {mine[0]['meant']} | {good} of {len(mine)} |")
    lines += [
        "| edited-case | the case is made milder after the port was made | contract | tests/cli/test_contract.py |",
        "| edited-record | verdicts, hashes, flags, folders, instances, case, kernel or source in `.port.json` are"
        " edited | contract, numerics | tests/cli/test_contract.py, tests/regression/test_only_the_record.py |",
        "",
    ]
    return "\n".join(lines)


def with_section(text: str, section: str) -> str:
    """The page with its section "Cheats" replaced, or added at the end."""
    found = re.search(r"^## Cheats\n.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found:
        return text[: found.start()] + section + ("\n" if text[found.end() :] else "") + text[found.end() :]
    return text.rstrip("\n") + "\n\n" + section


def write(work: Path) -> None:
    found = collected(work)
    lines = ",\n".join(json.dumps(r) for r in found)
    RESULT.write_text(f'{{"schema": 1, "backend": "emulator", "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# Who verifies the verifier\n"
    PAGE.write_text(with_section(text, page(found)), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], metavar="KERNEL")
    parser.add_argument("--cheat", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if args.write:
        write(args.work)
        return 0
    return sweep(args)


if __name__ == "__main__":
    sys.exit(main())
