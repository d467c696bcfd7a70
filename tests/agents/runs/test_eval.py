"""The evaluation set: every fill task has a hole, every optimise task a verified port, and the runner scores both."""

from __future__ import annotations

import json
import re

import pytest

from porter.agents.runs.evaluate import all_tasks, choose
from porter.agents.runs.session import translation
from porter.cli import main
from porter.config import PortConfig
from tests.agents.messages_server import Say, call, serving
from tests.agents.solutions import SOLUTIONS

TASKS = {t.name: t for t in all_tasks()}


def solver(request, number):
    """Solves what SOLUTIONS has; ends when there is nothing more to do."""
    said = [m for m in request["messages"] if m["role"] == "assistant"]
    name = re.search(r"# Kernel `(\w+)`", request["messages"][0]["content"][0]["text"])[1]
    if said or name not in SOLUTIONS:
        return Say([call("give_up", reason="nothing more to try")])
    return Say([*(call("replace_region", region=r, code=c) for r, c in SOLUTIONS[name].items()), call("verify")])


@pytest.fixture
def key(monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    monkeypatch.chdir(tmp_path)


def test_the_set_has_12_and_6_tasks_each_with_a_case():
    kinds = [t.kind for t in TASKS.values()]
    assert (kinds.count("fill"), kinds.count("optimise")) == (12, 6)
    assert all(t.source.with_suffix("").with_suffix(".case.toml").is_file() for t in TASKS.values())
    assert [t.name for t in choose(["optimise", "goto_loop", "goto_loop"])][-1] == "goto_loop"


@pytest.mark.parametrize("name", TASKS)
def test_the_translator_refuses_a_construct_of_every_fill_task_and_none_of_the_others(name):
    made = translation(TASKS[name].source, PortConfig(arch=("sm_90a",)))
    assert bool(made.module.holes) == (TASKS[name].kind == "fill")
    wanted = {region for region in SOLUTIONS.get(name, {}) if region.startswith("hole-")}
    assert wanted <= {f"hole-{n}" for n in re.findall(r"runtime\.hole\((\d+)", made.module.text)}


def test_without_a_key_nothing_is_asked(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "fill"]) == 2
    assert "ANTHROPIC_API_KEY" in capsys.readouterr().err


def test_the_runner_scores_by_task(key, capsys):
    pytest.importorskip("anthropic", reason="needs the extra `agent`")
    pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")

    def lazy(request, number):
        mine = "# Kernel `row_sum_tree`" in request["messages"][0]["content"][0]["text"]
        return Say([call("give_up", reason="too hard")]) if mine else solver(request, number)

    with serving(lazy) as served:
        assert main(["eval", "goto_loop", "power_recomputed", "row_sum_tree", "--base-url", served.url]) == 1
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.split()}
    assert rows["task"] == ["task", "kind", "success", "state", "attempts", "tokens", "cost"]
    assert rows["goto_loop"][1:] == ["fill", "yes", "verified", "1", "1100", "$0.01"]
    assert rows["power_recomputed"][1:] == ["optimise", "yes", "improved", "1", "2200", "$0.01"]
    assert rows["row_sum_tree"][1:] == ["optimise", "no", "unchanged", "0", "1100", "$0.01"]
    assert "claude-opus-5-5: fill 1 of 1, optimise 1 of 2; 2 attempts, 4400 tokens, $0.02" in out


@pytest.mark.slow
def test_every_solution_is_accepted(key, capsys):
    with serving(solver) as served:
        main(["eval", *SOLUTIONS, "--base-url", served.url, "--output-format", "json"])
    scores = json.loads(capsys.readouterr().out)["tasks"]
    assert {s["task"] for s in scores if s["success"]} == set(SOLUTIONS) == set(TASKS)
