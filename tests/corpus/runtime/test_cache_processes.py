"""Several processes and one cache: one builds, the others wait; one that is killed leaves nothing that is used."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest

from porter.corpus.runtime.cache import ArtifactCache

SPAWN = multiprocessing.get_context("spawn")
KEY = "ab12"


def _race(root, start, log, found):
    def build(folder):
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        (folder / "half").write_text("first")
        time.sleep(0.3)  # others find the entry incomplete
        (folder / "whole").write_text(str(os.getpid()))

    start.wait(60)
    path = ArtifactCache("k", root).get_or_build(KEY, build)
    found.put(((path / "half").read_text(), (path / "whole").read_text()))


def _never_ends(root, begun):
    def build(folder):
        (folder / "half").write_text("first")
        begun.set()
        time.sleep(600)

    ArtifactCache("k", root).get_or_build(KEY, build)


def _compile(cache, start, log, found):
    from porter.corpus import build
    from porter.corpus.runtime import dsl
    from porter.corpus.runtime.device import Device
    from porter.corpus.runtime.specialisation import loaded

    os.environ["PORTER_CACHE"] = str(cache)
    norm = {"result": "bf16[1,256]", "input": "bf16[1,256]", "weight": None, "epsilon": 1e-6}
    kernel = next(iter(build.plans({"op": "rms_norm", "args": norm}, Device("sm_90a", 132))))
    compile_ = dsl.build

    def counted(*args):
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        compile_(*args)

    dsl.build = counted
    start.wait(120)
    try:
        loaded(kernel, "sm_90a")()
    except TypeError as error:  # it is there, and wants arguments
        found.put(str(error))


def run(target, count, *args):
    """What each of `count` processes puts into a queue, started together."""
    start, found = SPAWN.Barrier(count), SPAWN.Queue()
    processes = [SPAWN.Process(target=target, args=(args[0], start, *args[1:], found)) for _ in range(count)]
    for process in processes:
        process.start()
    results = [found.get(timeout=180) for _ in processes]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * count
    return results


def test_of_processes_that_race_for_a_key_one_builds(tmp_path):
    results = run(_race, 4, tmp_path, tmp_path / "log")
    builders = (tmp_path / "log").read_text().split()
    assert len(builders) == 1 and results == [("first", builders[0])] * 4


def test_a_killed_builder_blocks_nobody(tmp_path):
    begun = SPAWN.Event()
    process = SPAWN.Process(target=_never_ends, args=(tmp_path, begun))
    process.start()
    assert begun.wait(60)
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    cache = ArtifactCache("k", tmp_path)
    assert cache.get(KEY) is None
    path = cache.put(KEY, {"whole": b"second"})
    assert [p.name for p in path.iterdir() if p.name != "manifest.json"] == ["whole"]


def test_processes_that_launch_the_same_kernel_compile_it_once(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("cutlass")
    pytest.importorskip("tvm_ffi")
    results = run(_compile, 2, tmp_path / "cache", tmp_path / "log")
    assert len((tmp_path / "log").read_text().split()) == 1
    assert len(set(results)) == 1 and "Expects" in results[0]
