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
from porter.review.editor import edited_text
from porter.review.port.changes import accept, edit, reject, remark, withdraw
from porter.review.port.loaded import Loaded, load, load_all
from porter.review.port.regions import Region
from porter.review.port.verifying import verify
from porter.review.words import about_rows, pattern_words, patterns_in
from porter.wording import plural

QUESTION = "[a]ccept [r]eject [c]omment [e]dit [x]plain wh[y] [w]ithdraw [n]ext [p]revious [q]uit? "


def review_plain(
    paths: Sequence[Path],
    config: PortConfig,
    ask: Callable[[str], str] = input,
    say: Callable[[str], None] = print,
) -> int:
    """Ask about every region that is not accepted. Returns the exit code of `--check`. End of input ends it."""
    for loaded in load_all(paths, config):
        say(headline(loaded))
        for fault in loaded.faults:
            say(render(fault).plain)
        if loaded.readable and not _port(loaded, config, ask, say):
            break
    return check(load_all(paths, config), say)


def check(ports: Sequence[Loaded], say: Callable[[str], None] = print) -> int:
    """`--check`: 0 when every region of every port is accepted as it is now, else 1 and what is missing."""
    for loaded in ports:
        if loaded.complete:
            say(f"{loaded.path}: {plural(len(loaded.regions), 'region')} accepted")
            continue
        say(f"{loaded.path}: {loaded.accepted} of {plural(len(loaded.regions), 'region')} accepted")
        for fault in loaded.faults:
            say(render(fault).plain)
        for region in loaded.regions if loaded.readable else ():
            state = loaded.state(region)
            if state != "accepted":
                say(f"  {loaded.path}:{region.first}: {region.name} is {state}")
    return 0 if all(loaded.complete for loaded in ports) else 1


def headline(loaded: Loaded) -> str:
    checks = "  ".join(f"{v.check} {v.status.value}" for v in loaded.verdicts) or "not verified"
    about = "" if loaded.verified or not loaded.verdicts else " (of an earlier text)"
    return (
        f"{loaded.name}: {loaded.cuda_path} -> {loaded.path}\n"
        f"{loaded.accepted} of {plural(len(loaded.regions), 'region')} accepted, {plural(len(loaded.holes), 'hole')}; "
        f"{checks}{about}"
    )


def _port(loaded: Loaded, config: PortConfig, ask: Callable[[str], str], say: Callable[[str], None]) -> bool:
    """The regions of one port; False when the person wants to stop."""
    at = 0
    while at < len(loaded.regions):
        region = loaded.regions[at]
        if loaded.state(region) == "accepted":
            at += 1
            continue
        say("\n" + shown(loaded, region))
        while True:
            try:
                answer, _, rest = ask(QUESTION).strip().partition(" ")
            except EOFError:
                return False
            if answer == "q":
                return False
            if answer in ("n", "p"):
                at = max(0, at + (1 if answer == "n" else -1))
                break
            try:
                loaded, done = _answer(loaded, region, answer, rest.strip(), config, ask, say)
            except EOFError:  # at the question for a comment
                return False
            except PorterError as error:
                for d in error.diagnostics:
                    say(render(d).plain)
                loaded = load(loaded.path, loaded.config)
                break
            if done:
                at += answer != "e"
                break
    return True


def _answer(
    loaded: Loaded, region: Region, answer: str, rest: str, config: PortConfig, ask: Callable[[str], str],
    say: Callable[[str], None],
) -> tuple[Loaded, bool]:  # fmt: skip
    """The port after an answer, and whether the region is done with."""
    if answer == "a":
        return accept(loaded, region, rest), True
    if answer == "r":
        made = reject(loaded, region, rest, config)
        say("rejected" + ("; the port has a hole there" if len(made.holes) > len(loaded.holes) else ""))
        return _verified(loaded, made, say), True
    if answer == "c":
        return remark(loaded, region, rest or ask("comment: ").strip()), False
    if answer == "w":
        return withdraw(loaded, region), False
    if answer == "e":
        made = edit(loaded, region, edited_text(loaded.port_text(region), loaded.path))
        say("edited" if made is not loaded else "not changed")
        return _verified(loaded, made, say), True
    if answer == "x":
        say(explained(loaded, region))
        return loaded, False
    if answer == "y":
        from porter.review.port.why import why

        for part in why(loaded, region, config):
            say(part + "\n")
        return loaded, False
    say("a, r, c, e, x, y, w, n, p or q; a comment may follow a and r")
    return loaded, False


def _verified(before: Loaded, made: Loaded, say: Callable[[str], None]) -> Loaded:
    """The port after its changed text was verified, which takes seconds; as it is when it has holes or is the same."""
    if made.text == before.text or made.holes:
        return made
    say("verifying ...")
    try:
        _, words = asyncio.run(verify(made.path, lambda text: None, made.config))
    except OSError as error:
        words = f"the verification cannot be run: {error}"
    say(words)
    return load(made.path, made.config)


def explained(loaded: Loaded, region: Region) -> str:
    """The pages of the codes and patterns that a region has; a sentence when it has none."""
    from porter.report.code_pages import page

    pages = []
    for code in codes_of(loaded, region):
        try:
            pages.append(page(code))
        except PorterError as error:
            pages.append(str(error))
    known = {p.name: p for p in all_patterns()}
    pages += [pattern_words(known[name]) for name in patterns_in(loaded, region) if name in known]
    return "\n".join(pages) or "this region has no diagnostic code and no pattern"


def codes_of(loaded: Loaded, region: Region) -> list[str]:
    holes = dict(loaded.holes)
    found = [holes[region.hole].code] if region.hole in holes else []
    return list(dict.fromkeys([*found, *(d.code for _, d in loaded.about(region))]))


def shown(loaded: Loaded, region: Region) -> str:
    """A region as plain text: what it is, the CUDA lines, the port's lines, what is known of it."""
    title, author, *about = about_rows(loaded, region)
    rows = [title, f"  {author}"]
    rows += [f"  {file or 'CUDA'} {n:5} | {text}" for file, n, text in loaded.cuda_rows(region)]
    rows += [f"  port {n:5} | {loaded.port_lines[n - 1]}" for n in range(region.first, region.last + 1)]
    return visible("\n".join([*rows, *(f"  {row}" for row in about)]))
