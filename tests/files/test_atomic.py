"""Files that are replaced whole, from several threads."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from porter.files.atomic import write_atomic


def test_threads_that_write_new_files_leave_the_umask_alone(tmp_path: Path):
    """A process can only learn its umask by setting another one: two threads that do may set it to 0 for good."""
    interval, mask = sys.getswitchinterval(), os.umask(0o022)
    sys.setswitchinterval(1e-6)
    try:

        def work(name: str) -> None:
            for n in range(60):
                write_atomic(tmp_path / f"{name}{n}.txt", "x")

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        seen = set()
        while any(t.is_alive() for t in threads):
            (tmp_path / "probe").touch()
            seen.add((tmp_path / "probe").stat().st_mode & 0o777)
            (tmp_path / "probe").unlink()
        now = os.umask(0o022)
    finally:
        sys.setswitchinterval(interval)
        os.umask(mask)
    assert now == 0o022 and seen <= {0o644}
    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o644}
