"""The timing core on made-up clocks: turns, spread, when it stops, what counts, how many sets of buffers."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest

from porter.verify.backends.timing import (
    AGAIN,
    COLD_SETS,
    MOST_ROUNDS,
    ROUNDS,
    Timing,
    cold_rotation,
    geomean,
    interleave,
    warm_calls,
)


def noisy(us: float, noise: float, seed: int = 0):
    rng = random.Random(seed)
    return lambda: us * (1.0 + rng.gauss(0.0, noise))


def test_every_side_has_its_turn_and_the_baseline_two():
    seen = []
    replays = {name: lambda name=name: seen.append(name) or 1.0 for name in ("original", "port", "copy")}
    timing = interleave(replays, "original", rounds=3, most=3, warm_up=0)
    rounds = [seen[i : i + 4] for i in range(0, len(seen), 4)]
    assert len(rounds) == 3 == timing.rounds
    assert all(sorted(r) == ["copy", "original", "original", "port"] for r in rounds)
    assert len({tuple(r) for r in rounds}) > 1, "no side may always follow the same one"
    assert set(timing.times) == {"original", "port", "copy", AGAIN}


def test_it_stops_when_the_baseline_agrees_with_itself():
    timing = interleave({"original": noisy(10, 0.001), "port": noisy(10.5, 0.001, 1)}, "original")
    assert timing.rounds == ROUNDS and timing.settled
    assert timing.ratio("port") == pytest.approx(1.05, abs=0.003)
    assert timing.counts("port")


def test_it_says_when_it_could_not_settle():
    timing = interleave({"original": noisy(10, 0.3), "port": noisy(10.1, 0.3, 1)}, "original")
    assert timing.rounds == MOST_ROUNDS and not timing.settled
    assert not timing.counts("port"), "1 % cannot be told in 30 % of noise"
    assert timing.data()["settled"] is False


def test_time_is_a_limit_too():
    clock = itertools.count(0.0, 1.0)
    timing = interleave(
        {"original": noisy(10, 0.3)}, "original", rounds=4, seconds=0.5, clock=lambda: next(clock)
    )  # fmt: skip
    assert timing.rounds == 4 and not timing.settled


def test_what_slows_everything_cancels():
    ticks = itertools.count()
    drift = lambda us: us * (1.0 + next(ticks) / 100.0)  # noqa: E731
    timing = interleave({"original": lambda: drift(10), "port": lambda: drift(9)}, "original", rounds=20, most=20)
    assert timing.times["original"][-1] > 1.4 * timing.times["original"][0]
    assert timing.ratio("port") == pytest.approx(0.9, rel=0.02)


def test_spread_is_not_zero_by_luck():
    """Medians that agree by chance do not make a noisy series precise."""
    rng = random.Random(5)
    times = [10.0 * (1 + rng.gauss(0, 0.2)) for _ in range(11)]
    again = sorted(times, key=lambda _: rng.random())
    assert statistics.median(again) == statistics.median(times)
    assert Timing("original", {"original": times, AGAIN: again}).spread > 0.02


def test_false_alarms_are_rare():
    """Two equal sides are told apart in few of many runs."""
    alarms = 0
    for seed in range(200):
        sides = {"original": noisy(10, 0.004, 2 * seed), "port": noisy(10, 0.004, 2 * seed + 1)}
        alarms += interleave(sides, "original").counts("port")
    assert alarms <= 30


def test_single_slow_rounds_do_not_matter():
    values = iter([10.0, 10.0, *[10.0 + 0.001 * i for i in range(5)], 400.0, *[10.0] * 100])
    timing = interleave({"original": lambda: next(values)}, "original", rounds=11)
    assert timing.settled and timing.median("original") == pytest.approx(10.0, rel=1e-3)


@pytest.mark.parametrize(("set_bytes", "calls"), [(100, 400), (3_000_000, 42), (60_000_000, 42), (10**9, 40)])
def test_cold_sets_exceed_the_cache_twice(set_bytes, calls):
    l2 = 62_914_560
    rotation = cold_rotation(set_bytes, l2, 10**11)
    assert rotation.sets * set_bytes >= 2 * l2 or rotation.sets == COLD_SETS
    assert rotation.calls % rotation.sets == 0 and rotation.calls == calls and rotation.sets >= 2


def test_counters_get_a_set_a_call():
    rotation = cold_rotation(10**8, 62_914_560, 10**11, once=True)
    assert rotation.sets == rotation.calls == 40
    assert cold_rotation(10**9, 62_914_560, 10**10, once=True).sets == 5, "half of the free memory"


def test_warm_replays_are_long_enough():
    assert warm_calls(2.0) == 200 and warm_calls(100.0) == 40 and warm_calls(0.01) == 400


def test_geomean():
    assert geomean([0.5, 2.0]) == pytest.approx(1.0)
