"""git in a folder, whoever started porter."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.files.git import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    assert git(folder, "init", "-q").ok
    (folder / "a.txt").write_bytes(b"caf\xe9\n")
    (folder / "b.txt").write_text("größe\n", encoding="utf-8")
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    assert git(folder, "add", ".").ok and git(folder, *who, "commit", "-qm", "first").ok
    return folder


def test_the_repository_is_the_folders_not_the_callers(repository: Path, tmp_path: Path, monkeypatch):
    """Within a hook git names its own repository in variables."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert git(repository, "log", "--format=%s").line == "first"
    assert git(repository, "show", "HEAD:b.txt").text == "größe\n"


def test_settings_given_by_variables_hold(repository: Path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "someone")
    assert git(repository, "config", "user.name").line == "someone"


def test_what_git_refuses_says_why(repository: Path, tmp_path: Path):
    for answer in (git(repository, "show", "nowhere:a.txt"), git(tmp_path / "missing", "status")):
        assert not answer.ok and answer.error and not answer.text


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_neither_bytes_nor_time_raise(repository: Path, seconds: float):
    """a.txt is not UTF-8."""
    answer = git(repository, "show", "HEAD:a.txt", seconds=seconds)
    assert not answer.ok and answer.error


def test_without_git_nothing_is_known(repository: Path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert not git(repository, "status").ok and git(None, "--version").line == ""
