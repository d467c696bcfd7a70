"""A launch of the port's own is run on every way through it; the original's launch asks for nothing more."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.agents.runs.session import translation
from porter.case.instances import instance_values
from porter.case.model import LaunchShape
from porter.case.reader import load_case
from porter.config import PortConfig
from porter.verify.launches.ways import MOST, OwnLaunch, ways_of

ROOT = Path(__file__).parents[3] / "reference_kernels"
TASK = Path(__file__).parents[2] / "agents" / "data" / "wide_block" / "wide_block.case.toml"


def port(returned: str, before: str = "") -> str:
    return f'def launch_config(*, rows, cols, **_):\n    """Launch."""\n{before}    return {returned}, 0\n'


def own(returned: str, before: str = "") -> OwnLaunch:
    case = load_case(TASK)
    return OwnLaunch(case, case.instances[0], {}, ways_of(port(returned, before)), 132)


def arms(returned: str, **names: int) -> set[int]:
    found = ways_of(port(returned)).at(names)
    return {number for _, number in found.ways}


def test_arms_of_min_max_conditions_and_divisors():
    assert arms("(min(rows, 8), 1), (1,)", rows=3) == {0}
    assert arms("(min(rows, 8), 1), (1,)", rows=9) == {1}
    assert arms("(min(rows, 8), 1), (1,)", rows=8) == set()  # of equal arms none is taken
    assert arms("(1 if rows < 4 else 2,), (1,)", rows=3) == {1}
    assert arms("(-(-rows // 256),), (1,)", rows=256) == {0}
    assert arms("(-(-rows // 256),), (1,)", rows=257) == {1}
    assert arms("(1 if rows > 4 and cols > 4 else 2,), (1,)", rows=3, cols=9) == {0}
    at = ways_of(port("(half, rows), (max(cols, 32),)", "    half = rows // 2\n")).at({"rows": 9, "cols": 1})
    assert (at.grid, at.block) == ((4, 9, 1), (32, 1, 1))


NOT_ARITHMETIC = ("(helper(rows),), (1,)", "(rows // 0,), (1,)", "(rows.x,), (1,)", "(input(),), (1,)")


@pytest.mark.parametrize("returned", NOT_ARITHMETIC)
def test_what_is_not_arithmetic_is_not_guessed(returned):
    ways = ways_of(port(returned))
    assert ways is None or ways.at({"rows": 3, "cols": 4}) is None


def test_no_launch_config_or_code_in_it():
    assert ways_of("x = 1\n") is None
    endless = ways_of(port("(1,), (1,)", "    while True:\n        pass\n"))
    assert endless is not None and endless.at({"rows": 1, "cols": 1}) is None


@pytest.mark.parametrize(
    ("returned", "differs", "largest", "refused"),
    [
        ("(rows, 1, 1), (1024, 1, 1)", False, 0, False),
        ("(rows, 1, 1), (512, 1, 1)", True, 401, False),
        ("(min(rows, 8), 1, 1), (1024, 1, 1)", True, 401, False),
        ("(min(rows, 1000), 1, 1), (1024, 1, 1)", True, 1025, False),
        ("(min(rows, 2000000), 1, 1), (1024, 1, 1)", True, 401, True),
        ("(rows, 1, 1), (256 if cols < 9000 else 512, 1, 1)", True, 12801, False),
    ],
)
def test_launches_beyond_the_case(returned, differs, largest, refused):
    launch = own(returned)
    assert launch.differs() is differs
    trials, where = launch.more_trials([], seed=1) if differs else ([], "")
    assert bool(where) is refused
    assert max((max(t.point.sizes.values()) for t in trials), default=0) == largest
    assert all(t.derived and t.point.elements <= MOST for t in trials)


BOUNDS = {
    "if": ("(rows, 1, 1)", "    if rows > 64:\n        rows = 64\n"),
    "tuple": ("((rows, 64)[rows > 64], 1, 1)", ""),
    "sorted": ("(sorted((1, rows, 64))[1], 1, 1)", ""),
    "range": ("(len(range(0, rows, 1 + rows // 65)), 1, 1)", ""),
    "product": ("(rows * (rows <= 64) + 64 * (rows > 64), 1, 1)", ""),
    "loop": ("(n, 1, 1)", "    n = 0\n    while n < rows and n < 64:\n        n += 1\n"),
    "for": ("(n, 1, 1)", "    n = 0\n    for i in range(min(rows, 64)):\n        n = i + 1\n"),
    "shift": ("(rows & 63 if rows >> 6 else rows, 1, 1)", ""),
    "modulo": ("(rows - (rows % 97 == 96), 1, 1)", ""),
    "one size": ("(rows - (rows == 4097), 1, 1)", ""),
    "table": ("({True: 64, False: rows}[rows > 64], 1, 1)", ""),
    "divmod": ("(divmod(rows, 65)[0] * 64 or rows, 1, 1)", ""),
    "comprehension": ("(min([rows] + [64 for _ in range(rows // 65)]), 1, 1)", ""),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_is_found_however_it_is_written(name):
    """The launch is not the case's from some size on, and a launch beyond it is added."""
    returned, before = BOUNDS[name]
    launch = own(f"{returned}, (1024, 1, 1)", before)
    assert launch.differs()
    trials, where = launch.more_trials([], seed=1)
    shown = [t for t in trials if not launch.is_the_cases(t.point, grid_only=True)]
    assert shown or where, [str(t.point) for t in trials]


def test_where_a_comparison_turns_is_found_by_bisection():
    launch = own("(rows if rows * 3 + 5 < 3 * 12347 else 1, 1, 1), (1024, 1, 1)")
    assert launch.differs()
    assert {12345, 12346} <= {p.sizes["rows"] for p in launch.around}


def test_a_helper_and_constants_of_the_module_are_read():
    text = "BOUND = 64\n\ndef few(n, most=BOUND):\n    return n if n < most else most\n\n"
    ways = ways_of(text + port("(few(rows), 1, 1), (1,)"))
    assert ways is not None and ways.at({"rows": 99, "cols": 1}).grid == (64, 1, 1)
    assert 64 in ways.constants


def test_a_launch_that_cannot_be_read_is_judged_by_its_values():
    """Answers come from the port itself: a factor that shows only where nothing can be run is refused."""
    case = load_case(TASK)

    def ask(points):
        return [LaunchShape((min(p.sizes["rows"], 2_000_000), 1, 1), (1024, 1, 1)) for p in points]

    launch = OwnLaunch(case, case.instances[0], {}, ways_of(port("(secret(rows), 1, 1), (1024,)")), 132, ask)
    assert launch.differs() and launch.more_trials([], seed=1)[1]


def test_what_the_original_cannot_show_either_is_not_asked_for(tmp_path):
    """The case's own grid has a bound too large to run: a port that keeps it and takes other blocks is not refused."""
    text = TASK.read_text().replace('grid = ["rows", 1, 1]', 'grid = ["min(rows, 2000000)", 1, 1]')
    (tmp_path / "k.case.toml").write_text(text)
    case = load_case(tmp_path / "k.case.toml")
    launch = OwnLaunch(case, case.instances[0], {}, ways_of(port("(min(rows, 2000000), 1, 1), (512, 1, 1)")), 132)
    assert launch.differs() and launch.more_trials([], seed=1)[1] == ""


KERNELS = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*.cu"))


@pytest.mark.parametrize("name", KERNELS)
def test_the_ports_of_the_reference_kernels_are_launched_as_their_cases_say(name):
    made = translation(ROOT / name, PortConfig(arch=("sm_90a",)))
    ways = ways_of(made.module.text)
    assert made.case is not None and ways is not None
    for instance in made.case.instances:
        values = instance_values(made.info, instance.instance)
        assert not OwnLaunch(made.case, instance, values, ways, 132).differs(), instance.args
