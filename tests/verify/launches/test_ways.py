"""A launch of the port's own is run on every way through it; the original's launch asks for nothing more."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.agents.runs.session import translation
from porter.case.instances import instance_values
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


NOT_ARITHMETIC = ("(helper(rows),), (1,)", "(rows // 0,), (1,)", "(rows.x,), (1,)", "rows, (1,)[0:]")


@pytest.mark.parametrize("returned", NOT_ARITHMETIC)
def test_what_is_not_arithmetic_is_not_guessed(returned):
    ways = ways_of(port(returned))
    assert ways is None or ways.at({"rows": 3, "cols": 4}) is None


def test_no_launch_config_or_code_in_it():
    assert ways_of("x = 1\n") is None
    assert ways_of(port("(1,), (1,)", "    for i in range(3):\n        pass\n")) is None


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
