"""Places for candidates: worktrees where the port is in git, else copies; nothing of the user's is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from porter.agents.runs.workspace import make_place, remove_place, repository_of


def git(folder: Path, *arguments: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *own, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def project(tmp_path):
    """A folder with a source, a case and a port; `git init` is the test's."""
    root = tmp_path / "project"
    for name, text in {"csrc/k.cu": "old\n", "csrc/k.case.toml": "schema = 1\n", "csrc/common.cuh": "x\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def place_in(project: Path, number: int = 1, target: str = "ported/k.py"):
    files = [project / "csrc/k.cu", project / "csrc/k.case.toml"]
    return make_place(project / ".porter/runs/r/work" / f"candidate-{number}", project / target, "port\n", files)


def commit(project: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "csrc")
    git(project, "commit", "-q", "-m", "one")


def test_in_a_repository_it_is_a_worktree_with_the_files_as_they_are_now(project):
    commit(project)
    hook = project / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    (project / "csrc/k.cu").write_text("new, not committed\n")
    before = (git(project, "branch", "-a"), git(project, "log", "--all", "--oneline"), git(project, "diff"))
    places = [place_in(project, n) for n in (1, 2, 3)]
    assert all(p.worktree for p in places)
    assert git(project, "worktree", "list").count("\n") == 4
    one = places[0]
    assert (one.root / "csrc/k.cu").read_text() == "new, not committed\n"
    assert (one.root / "csrc/common.cuh").is_file() and one.port == one.root / "ported/k.py"
    assert not list(project.rglob("hooked"))
    one.write("better\n")
    assert one.port.read_text() == "better\n" and places[1].port.read_text() == "port\n"
    assert "?? ported/" in git(one.root, "status", "--porcelain")
    for p in places:
        remove_place(p.root)
    assert git(project, "worktree", "list").count("\n") == 1
    assert (git(project, "branch", "-a"), git(project, "log", "--all", "--oneline"), git(project, "diff")) == before
    assert not (project / ".porter/runs/r/work").exists() and not (project / "ported").exists()
    one.write("too late\n")  # a place that is gone stays gone
    assert not one.root.exists()


def test_what_a_killed_process_left_is_replaced(project):
    commit(project)
    left = place_in(project)
    (left.root / "stray").write_text("x")
    again = place_in(project)
    assert again.worktree and not (again.root / "stray").exists()
    assert git(project, "worktree", "list").count("\n") == 2
    remove_place(again.root)
    remove_place(again.root)
    assert git(project, "worktree", "list").count("\n") == 1


def test_the_git_that_started_porter_does_not_matter(project, monkeypatch, tmp_path):
    commit(project)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    place = place_in(project)
    assert place.worktree
    remove_place(place.root)


@pytest.mark.parametrize("why", ["no git", "no commit", "the port is elsewhere", "git is missing", "git says no"])
def test_elsewhere_it_is_a_copy_of_the_kernels_files(project, monkeypatch, why, tmp_path):
    target = "ported/k.py"
    if why == "no commit":
        git(project, "init", "-q")
    elif why != "no git":
        commit(project)
    if why == "the port is elsewhere":
        target = "../elsewhere/k.py"
    if why == "git is missing":
        monkeypatch.setenv("PATH", str(tmp_path))
    if why == "git says no":
        (project / ".git/worktrees").write_text("not a folder")
    place = place_in(project, target=target)
    assert not place.worktree and place.port.read_text() == "port\n"
    copied = sorted(p.name for p in place.root.rglob("*") if p.is_file())
    assert copied == ["k.case.toml", "k.cu", "k.py"]
    found = next(place.root.rglob("k.cu"))
    assert place.port.parent.joinpath(*Path("../csrc/k.cu").parts).resolve() == found.resolve() or "elsewhere" in target
    remove_place(place.root)
    assert not place.root.exists()


def test_a_place_that_git_knows_by_a_relative_path_is_removed_from_its_list(project, monkeypatch, tmp_path):
    """As git writes it with worktree.useRelativePaths; porter may run anywhere."""
    commit(project)
    place = place_in(project)
    mark = place.root / ".git"
    where = Path(mark.read_text().removeprefix("gitdir:").strip())
    mark.write_text(f"gitdir: {os.path.relpath(where, place.root)}\n")
    monkeypatch.chdir(tmp_path)
    remove_place(place.root)
    assert git(project, "worktree", "list").count("\n") == 1 and not where.exists() and not place.root.exists()


@pytest.mark.parametrize("name", ["csrc/k.cu", "csrc", "ported"])
def test_links_of_the_last_commit_lead_to_nothing_that_is_written_to(project, tmp_path, name):
    """What was a link when it was committed is a file or folder now: the place must not write through the link."""
    other = tmp_path / "precious"
    other.mkdir()
    (other / "k.cu").write_text("precious\n")
    (other / "k.py").write_text("precious\n")
    link, was = project / name, project / "was"
    if link.exists():
        link.rename(was)
    link.symlink_to(other / "k.cu" if name == "csrc/k.cu" else other)
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "one")
    link.unlink()
    if was.exists():
        was.rename(link)
    place = place_in(project)
    assert [p.read_text() for p in sorted(other.iterdir())] == ["precious\n"] * 2
    assert place.port.read_text() == "port\n" and (place.root / "csrc/k.cu").read_text() == "old\n"
    assert place.port.resolve() == place.root.resolve() / "ported/k.py"
    remove_place(place.root)
    assert git(project, "worktree", "list").count("\n") == 1


def test_in_a_submodule_a_bare_repository_and_on_a_detached_head(project, tmp_path):
    commit(project)
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(project), "inner")
    git(outer / "inner", "checkout", "-q", "--detach")
    inside = place_in(outer / "inner")
    assert inside.worktree and (inside.root / "csrc/common.cuh").is_file()
    remove_place(inside.root)
    assert git(outer / "inner", "worktree", "list").count("\n") == 1 and git(outer, "status", "--porcelain", "inner")
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    shutil.copytree(project / "csrc", bare / "csrc")
    copied = place_in(bare)
    assert not copied.worktree and copied.port.read_text() == "port\n"
    remove_place(copied.root)


def test_a_path_outside_of_the_repository_is_noticed(project, tmp_path):
    commit(project)
    assert repository_of(project / "ported/k.py", [project / "csrc/k.cu"]) == project.resolve()
    (tmp_path / "other.cu").write_text("")
    assert repository_of(project / "ported/k.py", [tmp_path / "other.cu"]) is None
