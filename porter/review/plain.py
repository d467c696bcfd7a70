"""`porter review --plain`: the questions of the review without a full-screen terminal, one region after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from porter.config import PortConfig
from porter.model import PorterError
from porter.patterns.idioms.catalogue import all_patterns
from porter.report.render import render
from porter.report.terminal import visible
from porter.review.descriptions import describe_region, pattern_page, patterns_in
from porter.review.editor import edited_text
from porter.review.port.actions import accept, add_comment, edit, reject, withdraw
from porter.review.port.regions import Region
from porter.review.port.reviewed_port import ReviewedPort, load, load_all
from porter.review.port.verifying import verify
from porter.wording import plural

QUESTION = "[a]ccept [r]eject [c]omment [e]dit [x]plain wh[y] [w]ithdraw [n]ext [p]revious [q]uit? "


def review_plain(
    paths: Sequence[Path],
    config: PortConfig,
    ask: Callable[[str], str] = input,
    say: Callable[[str], None] = print,
) -> int:
    """Ask about every region that is not accepted. Returns the exit code of `--check`. End of input ends it."""
    for port in load_all(paths, config):
        say(headline(port))
        for fault in port.faults:
            say(render(fault).plain)
        if port.readable and not _ask_about_port(port, config, ask, say):
            break
    return check(load_all(paths, config), say)


def check(ports: Sequence[ReviewedPort], say: Callable[[str], None] = print) -> int:
    """`--check`: 0 when every region of every port is accepted as it is now, else 1 and what is missing."""
    for port in ports:
        if port.complete:
            say(f"{port.path}: {plural(len(port.regions), 'region')} accepted")
            continue
        say(f"{port.path}: {port.accepted} of {plural(len(port.regions), 'region')} accepted")
        for fault in port.faults:
            say(render(fault).plain)
        for region in port.regions if port.readable else ():
            state = port.state(region)
            if state != "accepted":
                say(f"  {port.path}:{region.first}: {region.name} is {state}")
    return 0 if all(port.complete for port in ports) else 1


def headline(port: ReviewedPort) -> str:
    checks = "  ".join(f"{v.check} {v.status.value}" for v in port.verdicts) or "not verified"
    about = "" if port.verified or not port.verdicts else " (before the last edit)"
    return (
        f"{port.name}: {port.cuda_path} -> {port.path}\n"
        f"{port.accepted} of {plural(len(port.regions), 'region')} accepted, {plural(len(port.holes), 'hole')}; "
        f"{checks}{about}"
    )


def _ask_about_port(
    port: ReviewedPort, config: PortConfig, ask: Callable[[str], str], say: Callable[[str], None]
) -> bool:
    """The regions of one port; False when the person wants to stop."""
    index = 0
    while index < len(port.regions):
        region = port.regions[index]
        if port.state(region) == "accepted":
            index += 1
            continue
        say("\n" + region_text(port, region))
        while True:
            try:
                answer, _, rest = ask(QUESTION).strip().partition(" ")
            except EOFError:
                return False
            if answer == "q":
                return False
            if answer in ("n", "p"):
                index = max(0, index + (1 if answer == "n" else -1))
                break
            try:
                port, done = _answer(port, region, answer, rest.strip(), config, ask, say)
            except EOFError:  # at the question for a comment
                return False
            except PorterError as error:
                for d in error.diagnostics:
                    say(render(d).plain)
                port = load(port.path, port.config)
                break
            if done:
                index += answer != "e"
                break
    return True


def _answer(
    port: ReviewedPort, region: Region, answer: str, rest: str, config: PortConfig, ask: Callable[[str], str],
    say: Callable[[str], None],
) -> tuple[ReviewedPort, bool]:  # fmt: skip
    """The port after an answer, and whether the region is done with."""
    if answer == "a":
        return accept(port, region, rest), True
    if answer == "r":
        changed = reject(port, region, rest, config)
        say("rejected" + ("; the port has a hole there" if len(changed.holes) > len(port.holes) else ""))
        return _verified(port, changed, say), True
    if answer == "c":
        return add_comment(port, region, rest or ask("comment: ").strip()), False
    if answer == "w":
        return withdraw(port, region), False
    if answer == "e":
        changed = edit(port, region, edited_text(port.port_text(region), port.path))
        say("edited" if changed is not port else "not changed")
        return _verified(port, changed, say), True
    if answer == "x":
        say(explained(port, region))
        return port, False
    if answer == "y":
        from porter.review.port.why import why

        for part in why(port, region, config):
            say(part + "\n")
        return port, False
    say("a, r, c, e, x, y, w, n, p or q; a comment may follow a and r")
    return port, False


def _verified(before: ReviewedPort, changed: ReviewedPort, say: Callable[[str], None]) -> ReviewedPort:
    """The port after its changed text was verified, which takes seconds; as it is when it has holes or is the same."""
    if changed.text == before.text or changed.holes:
        return changed
    say("verifying ...")
    try:
        _, message = asyncio.run(verify(changed.path, lambda text: None, changed.config))
    except OSError as error:
        message = f"the verification cannot be run: {error}"
    say(message)
    return load(changed.path, changed.config)


def explained(port: ReviewedPort, region: Region) -> str:
    """The pages of the codes and patterns that a region has; a sentence when it has none."""
    from porter.report.code_pages import page

    pages = []
    for code in codes_of(port, region):
        try:
            pages.append(page(code))
        except PorterError as error:
            pages.append(str(error))
    known = {p.name: p for p in all_patterns()}
    pages += [pattern_page(known[name]) for name in patterns_in(port, region) if name in known]
    return "\n".join(pages) or "this region has no diagnostic code and no pattern"


def codes_of(port: ReviewedPort, region: Region) -> list[str]:
    holes = dict(port.holes)
    found = [holes[region.hole].code] if region.hole in holes else []
    return list(dict.fromkeys([*found, *(d.code for _, d in port.about(region))]))


def region_text(port: ReviewedPort, region: Region) -> str:
    """A region as plain text: what it is, the CUDA lines, the port's lines, what is known of it."""
    title, author, *about = describe_region(port, region)
    rows = [title, f"  {author}"]
    rows += [f"  {file or 'CUDA'} {n:5} | {text}" for file, n, text in port.cuda_rows(region)]
    rows += [f"  port {n:5} | {port.port_lines[n - 1]}" for n in range(region.first, region.last + 1)]
    return visible("\n".join([*rows, *(f"  {row}" for row in about)]))
