"""What a process that was killed leaves is deleted by the next one; what somebody works with is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from porter.corpus.runtime.cache import ArtifactCache
from porter.corpus.runtime.scratch import Scratch, remove, sweep
from porter.files.atomic import write_atomic

ROOT = Path(__file__).resolve().parents[2]
HOLDER = "from porter.corpus.runtime.scratch import Scratch\ns = Scratch('x')\nprint(s.path, flush=True)\ninput()\n"


def holder(folder: Path) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    )


def test_folders_of_killed_processes_are_swept_and_those_in_use_stay(tmp_path: Path) -> None:
    dead, alive = holder(tmp_path), holder(tmp_path)
    assert dead.stdout and alive.stdout
    left, used = (Path(p.stdout.readline().strip()) for p in (dead, alive))  # type: ignore[union-attr]
    assert left.is_dir() and used.is_dir()
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    (left / "hidden").mkdir(mode=0)
    sweep(tmp_path)
    assert not left.exists() and used.is_dir()
    alive.kill()
    alive.communicate()


def test_folders_of_others_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "porter-else").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "porter-run-link").symlink_to(tmp_path / "target")
    (tmp_path / "porter-new-young").mkdir()
    (tmp_path / "porter-new-old").mkdir()
    os.utime(tmp_path / "porter-new-old", (0, time.time() - 7200))
    sweep(tmp_path)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["porter-else", "porter-new-young", "porter-run-link", "target"]


def test_a_scratch_folder_is_gone_after_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Scratch("x") as folder:
        assert Path(folder).is_dir() and Path(folder).parent == tmp_path
    scratch = Scratch()
    (scratch.path / "a").mkdir(mode=0)
    scratch.close()
    assert list(tmp_path.iterdir()) == []
    remove(tmp_path / "not there")


def test_a_write_deletes_what_a_killed_one_left(tmp_path: Path) -> None:
    old, young, other = (
        tmp_path / f".{name}.tmp" for name in ("a.py.0123456789ab", "a.py.123456789abc", "b.py.0123456789ab")
    )
    for path in (old, young, other):
        path.write_text("half")
    for path in (old, other):
        os.utime(path, (0, time.time() - 600))
    write_atomic(tmp_path / "a.py", "x = 1\n")
    assert not old.exists() and young.exists() and other.exists()


def test_a_build_deletes_what_a_killed_one_left(tmp_path: Path) -> None:
    cache = ArtifactCache("kind", tmp_path)
    key = "ab" * 32
    left = cache.entry(key).parent / f".building-{key[:16]}-xyz"
    left.mkdir(parents=True)
    cache.put(key, {"a": b"1"})
    assert not left.exists() and cache.get(key) is not None
