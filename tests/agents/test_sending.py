"""What is sent and when, what never is, and where the key may not turn up."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from porter.cli import main
from porter.model import Status, Verdict
from porter.provenance.store import read_record, update_record
from tests.agents.messages_server import Fail, Say, call, script, serving, text
from tests.agents.runs.test_eval import TASKS
from tests.agents.stub_verifier import StubVerifier
from tests.agents.test_cheats import DATA, RIGHT

pytest.importorskip("anthropic", reason="needs the extra `agent`")
pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")

KEY = "sk-test-0123456789"
ARGS = ["port", "vadd4.cu", "--arch", "sm_90a", "--seed", "7"]
SOLVE = Say([call("replace_region", region="hole-1", code=RIGHT), call("verify")])


@pytest.fixture
def work(tmp_path, monkeypatch):
    for name in ("vadd4.cu", "vadd4.case.toml"):
        shutil.copy(DATA / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for module in ("session", "prompt_preview"):  # nothing here is about verification
        monkeypatch.setattr(f"porter.agents.runs.{module}.PortVerifier", lambda *args: StubVerifier())
    return tmp_path


def everything(folder: Path) -> str:
    """Names and contents of all files below a folder, as one text."""
    files = [p for p in folder.rglob("*") if p.is_file()]
    return "\n".join(f"{p}\n{p.read_bytes().decode('utf-8', 'replace')}" for p in files)


# ---------------------------------------------------------------- what would be sent


def test_show_prompt_prints_what_would_be_sent_and_sends_nothing(work, capfd):
    with serving(script(Say([call("give_up", reason="x")]))) as served:
        where = ["--base-url", served.url]
        assert main([*ARGS, *where, "--show-prompt", "--output-format", "json"]) == 0
        exact = capfd.readouterr().out
        assert main([*ARGS, *where, "--show-prompt"]) == 0
        shown = capfd.readouterr().out
        assert served.contacts == 0 and not Path("ported").exists() and not Path(".porter").exists()
        assert main([*ARGS, *where, "--agent"]) == 1
    assert exact.encode() == served.bodies[0] + b"\n"  # the bytes that the server got
    sent = served.requests[0]
    assert shown.startswith(f"POST {served.url}/v1/messages\nmodel: {sent['model']}\n")
    for block in [*sent["system"], *sent["messages"][0]["content"]]:
        assert block["text"] in shown
    for n, tool in enumerate(sent["tools"]):
        assert f"tools[{n}].name: {tool['name']}\ntools[{n}].description: {tool['description']}\n" in shown
    assert "stream: true" in shown and shown.count("cache_control.type: ephemeral") == str(sent).count("cache_control")


def test_show_prompt_is_empty_where_nothing_would_be_sent(work, monkeypatch, capfd):
    """No case (and no draft of one is written), no way to run the original, a port that is good as it is."""
    verifier, where = StubVerifier(), [*ARGS, "--agent", "--show-prompt"]
    monkeypatch.setattr("porter.agents.runs.prompt_preview.PortVerifier", lambda *args: verifier)
    assert main([*where, "--optimise"]) == 0  # the port has a hole, so of both modes one asks
    assert capfd.readouterr().out.count("POST ") == 1
    verifier.says = "the original cannot be run"
    assert main(where) == 0
    assert capfd.readouterr() == ("", "nothing would be sent: no kernel with a case needs the agent\n")
    verifier.says = ""
    Path("vadd4.case.toml").unlink()
    assert main(where) == 0
    assert capfd.readouterr().out == "" and sorted(p.name for p in work.iterdir()) == ["vadd4.cu"]


def test_a_file_without_a_kernel_does_not_hide_the_prompts_of_the_others(work, capfd):
    Path("a.cu").write_text("int host;\n")
    assert main(["port", ".", "--arch", "sm_90a", "--agent", "--show-prompt"]) == 2
    out, err = capfd.readouterr()
    assert out.count("POST ") == 1 and "PRT001" in err and "a.cu" in err


def test_the_prefix_is_the_same_bytes_for_every_kernel_and_process(work, monkeypatch, capfd):
    """tools and system come before the messages in the prompt; both stand at the end of the body."""
    for name in ("goto_loop", "packed_add_u8", "row_sum_tree"):
        for suffix in (".cu", ".case.toml"):
            shutil.copy(TASKS[name].source.with_suffix("").with_suffix(suffix), work)
    monkeypatch.undo()  # the process has the real verifier
    monkeypatch.chdir(work)
    args = ["--show-prompt", "--arch", "sm_90a", "--seed", "7", "--output-format", "json"]
    found = []
    for name, mode in (("goto_loop", "--agent"), ("packed_add_u8", "--agent"), ("row_sum_tree", "--optimise")):
        assert main(["port", f"{name}.cu", mode, *args]) == 0
        found.append(capfd.readouterr().out.encode())
    command = [sys.executable, "-m", "porter.cli", "port", "goto_loop.cu", "--agent", *args]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONHASHSEED": "4711"})
    assert done.returncode == 0, done.stderr
    found.append(done.stdout)
    prefixes = [body[body.rindex(b',"model":"') :] for body in found]
    assert all(b'"tools":[{' in p and b'"system":[{' in p and len(p) > 20_000 for p in prefixes)
    assert all(b"block_reduce(v, scratch" in p and b"__expf() -> lib.exp_approx" in p for p in prefixes)
    assert len(set(prefixes)) == 1
    assert found[0] == found[3] and len(set(found)) == 3


# ---------------------------------------------------------------- when nothing is sent


def test_nothing_is_sent_without_agent(work, monkeypatch, capfd):
    """Every other command, with a key, a server and no network but child processes' own sockets."""
    Path("pyproject.toml").write_text('[tool.porter.agent]\napi_key_command = "touch asked"\n')

    def connect(self, address, real=socket.socket.connect):
        if self.family != socket.AF_UNIX:
            raise AssertionError(f"a connection to {address}")
        return real(self, address)

    with serving(script(Fail(500, "api_error"))) as served:
        monkeypatch.setenv("PORTER_AGENT_BASE_URL", served.url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", served.url)
        monkeypatch.setattr(socket.socket, "connect", connect)
        assert main(ARGS) == 1
        assert main([*ARGS, "--model", "claude-opus-5-5", "--budget-usd", "1"]) == 1
        assert main([*ARGS, "--show-prompt"]) == 0
        assert main(["verify", "ported/vadd4.py"]) in (1, 2)
        for command in (["port", "vadd4.cu", "--analyze"], ["explain", "PRT503"], ["patterns"], ["corpus", "list"],
                        ["agent", "list"], ["eval", "--list"]):  # fmt: skip
            assert main(command) == 0, command
        with pytest.raises(AssertionError, match="a connection to"):
            socket.create_connection(("127.0.0.1", 1))
    assert served.contacts == 0 and not Path("asked").exists() and not Path(".porter").exists()


def test_without_a_key_the_translators_port_and_one_line(work, monkeypatch, capfd):
    assert main([*ARGS, "-o", "plain"]) == 1
    plain = capfd.readouterr()
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with serving(script(Fail(500, "api_error"))) as served:
        assert main([*ARGS, "-o", "asked", "--agent", "--base-url", served.url]) == 1
        assert served.contacts == 0
    without = capfd.readouterr()
    line = "the agent was not asked: set ANTHROPIC_API_KEY, or api_key_command in [tool.porter.agent]"
    assert [at for at in without.err.splitlines() if "KEY" in at] == [line] and "KEY" not in without.out
    bare = [re.sub(r"\d+\.\d+ s", "", at) for at in (plain.out, without.out.replace("asked/", "plain/"))]
    assert bare[0] == bare[1]
    files = [{p.name: p.read_bytes() for p in Path(f).iterdir() if p.is_file()} for f in ("plain", "asked")]
    assert files[0] == files[1] and "vadd4.py" in files[0]
    assert not Path(".porter").exists()


def test_a_kernel_without_a_case_is_not_sent(work):
    """What the model wrote would be judged by a case that nobody has confirmed."""
    Path("vadd4.case.toml").unlink()
    with serving(script(SOLVE)) as served:
        assert main([*ARGS, "--agent", "--base-url", served.url]) == 1
        assert served.contacts == 0 and not Path(".porter/runs").exists()


def test_a_model_without_a_price_is_refused_before_anything_is_done(work, capfd):
    with serving(script(SOLVE)) as served:
        asked = [*ARGS, "--agent", "--model", "model-x", "--base-url", served.url]
        assert main(asked) == 2
        err = capfd.readouterr().err
        assert "PRT921" in err and "price of model-x" in err and "--budget-usd none" in err
        assert main([*asked, "--budget-usd", "none"]) == 2  # some limit there must be
        assert served.contacts == 0 and not Path("ported").exists() and not Path(".porter").exists()
        assert main([*asked, "--budget-usd", "none", "--budget-tokens", "9000"]) == 0
    assert served.requests[0]["model"] == "model-x" and "price of model-x unknown" in capfd.readouterr().out


def test_only_a_verified_port_is_optimised(work, capfd):
    with serving(script(SOLVE)) as served:
        assert main([*ARGS, "--optimise", "--base-url", served.url]) == 1
    assert served.contacts == 0 and "the agent had nothing to do" in capfd.readouterr().out


# ---------------------------------------------------------------- the key


def sent_key(headers: dict[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def test_a_command_for_the_key(work, monkeypatch, capfd):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    Path("key.sh").write_text("#!/bin/sh\necho asked >> asked\necho chatter >&2\necho sk-command-$1\n")
    Path("key.sh").chmod(0o755)
    Path("pyproject.toml").write_text('[tool.porter.agent]\napi_key_command = "./key.sh 98765"\n')
    with serving(script(SOLVE)) as served:
        assert main([*ARGS, "--agent", "--base-url", served.url]) == 0
    assert sent_key(served.headers[0]) == "sk-command-98765" and Path("asked").read_text() == "asked\n"
    out, err = capfd.readouterr()
    assert "sk-command-98765" not in everything(work) + out + err and "98765" not in everything(work / ".porter")


def test_a_command_for_the_key_that_fails(work, monkeypatch, capfd):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    Path("pyproject.toml").write_text("[tool.porter.agent]\napi_key_command = \"sh -c 'echo hidden; exit 3'\"\n")
    with serving(script(SOLVE)) as served:
        assert main([*ARGS, "--agent", "--base-url", served.url]) == 2
    out, err = capfd.readouterr()
    assert served.contacts == 0 and "PRT922" in err and "exit code 3" in err and "hidden" not in out + err


@pytest.mark.parametrize("text", ["logged in as me\\nsk-hidden-4711", "sk-hidden-4711 expires soon", "sk-hidd\u00e9n"])
def test_more_than_a_key_is_refused_and_not_shown(work, monkeypatch, capfd, text):
    """It would end as a lost connection, or reach the server as another key."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    Path("pyproject.toml").write_text(
        f"[tool.porter.agent]\napi_key_command = \"printf '{text}'\"\n".replace("\\", "\\\\")
    )
    with serving(script(SOLVE)) as served:
        assert main([*ARGS, "--agent", "--base-url", served.url]) == 2
        monkeypatch.setenv("ANTHROPIC_API_KEY", text.replace("\\n", "\n"))
        assert main([*ARGS, "--agent", "--base-url", served.url]) == 2
        assert served.contacts == 0
    out, err = capfd.readouterr()
    assert err.count("PRT922") == 2 and "`printf` is more than a key" in err and "ANTHROPIC_API_KEY is more" in err
    assert "sk-hidd" not in out + err


def test_the_key_is_written_nowhere_even_when_server_and_model_repeat_it(work, capfd):
    code = f"# {KEY}\n{RIGHT}\n# {KEY[:5]}"
    model = script(
        Fail(500, "api_error", f"the key {KEY} broke us"),
        Say([text(f"your key is {KEY}"), call("search_corpus", query=KEY), call("nothing", **{KEY: KEY})]),
        Say([call("read_region", region=f"x{KEY}"), call("verify")], raw_inputs=[f'{{"region": "{KEY}', "{}"]),
        Say([call("replace_region", region="hole-1", code=code), call("verify")]),
    )
    with serving(model) as served:
        assert main([*ARGS, "--agent", "--base-url", served.url]) == 0
    assert sent_key(served.headers[0]) == KEY and len(served.requests) == 4
    out, err = capfd.readouterr()
    assert KEY not in everything(work) + out + err
    assert KEY not in str(served.requests)  # what the model said of it is not repeated to it either
    assert "# [secret]" in Path("ported/vadd4.py").read_text()
    assert "the key [secret] broke us" in everything(work / ".porter")
    (run,) = [p.name for p in Path(".porter/runs").iterdir()]
    assert main(["agent", "resume", run]) == 0  # a record without the key is a record of this run all the same


@pytest.mark.parametrize("key", ["none", "reply", "1"])
def test_a_key_that_is_a_word_of_the_record_does_no_harm(work, monkeypatch, key):
    """Servers of one's own often take any key."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    with serving(script(Say([call("search_corpus", query="event none reply")]), SOLVE)) as served:
        assert main([*ARGS, "--agent", "--base-url", served.url]) == 0
        (run,) = [p.name for p in Path(".porter/runs").iterdir()]
        assert main(["agent", "resume", run]) == 0
    assert len(served.requests) == 2


def test_resumed_runs_go_on_each_with_its_own_server(work):
    """Runs of several servers in one command: none is sent to another's."""
    model = script(Fail(401, "authentication_error"), SOLVE)
    with serving(model) as one, serving(model) as two:
        for served, out in ((one, "a"), (two, "b")):
            assert main([*ARGS, "-o", out, "--agent", "--base-url", served.url]) == 1
        runs = [p.name for p in Path(".porter/runs").iterdir()]
        assert main(["agent", "resume", *runs]) == 0
        assert (len(one.requests), len(two.requests)) == (2, 2)
    assert all("0x7F7F7F7F" in Path(out, "vadd4.py").read_text() for out in ("a", "b"))


# ---------------------------------------------------------------- folders that cannot be written


@pytest.mark.parametrize("name", ["lock", "events.jsonl", "result.json"])
def test_a_run_that_cannot_be_written_is_no_defect_of_porter(work, capfd, name):
    """Something is in the way of a file of the run; taken away, the run goes on, and the port is not lost."""
    with serving(script(SOLVE)) as served:
        assert main([*ARGS, "--agent", "--base-url", served.url]) == 0
    (run,) = Path(".porter/runs").iterdir()
    port = Path("ported/vadd4.py").read_text()
    Path("ported/vadd4.py").unlink()
    (run / name).rename(run / "kept")
    (run / name / "x").mkdir(parents=True)
    capfd.readouterr()
    assert main(["agent", "resume", run.name]) == 2
    out, err = capfd.readouterr()
    assert "PRT953" in out + err and "PRT950" not in out + err and "defect" not in out + err
    shutil.rmtree(run / name)
    (run / "kept").rename(run / name)
    assert main(["agent", "resume", run.name]) == 0
    assert Path("ported/vadd4.py").read_text() == port


def test_a_finished_run_does_not_undo_what_was_verified_since(work):
    """`porter verify` has newer answers in the record, from a GPU say; the run is resumed with its batch."""
    with serving(script(SOLVE)) as served:
        assert main([*ARGS, "--agent", "--base-url", served.url]) == 0
    newer = Verdict("performance", Status.PASS, "timed on a GPU")
    update_record(Path("ported/vadd4.py"), lambda record: replace(record, verdicts=(newer,)))
    before = Path("ported/vadd4.port.json").read_bytes()
    (run,) = Path(".porter/runs").iterdir()
    assert main(["agent", "resume", run.name]) == 0
    assert Path("ported/vadd4.port.json").read_bytes() == before
    Path("ported/vadd4.port.json").unlink()
    Path("ported/vadd4.py").unlink()
    assert main(["agent", "resume", run.name]) == 0  # what is not there is written again
    assert read_record(Path("ported/vadd4.py")).extra["agent"]["state"] == "verified"


# ---------------------------------------------------------------- another provider

SECOND = """
from porter.agents.messages import ModelReply, Usage

KEY_VARIABLE = "SECOND_KEY"
ASKED = []

def connect(connection):
    return Second(connection.key)

class Second:
    def __init__(self, key):
        self.key = key

    def wire(self, request):
        return "second:", request.digest.encode()

    def send(self, request, on_text):
        ASKED.append(self.key)
        names = [t["name"] for t in request.tools]
        assert "verify" in names and request.system and request.messages
        edit = {"type": "tool_use", "id": "1", "name": "replace_region", "input": {"region": "hole-1", "code": RIGHT}}
        judge = {"type": "tool_use", "id": "2", "name": "verify", "input": {}}
        return ModelReply((edit, judge), "tool_use", Usage(1, 2))
"""


def test_a_second_provider_is_one_new_file(work, monkeypatch, capfd):
    """A whole run through a module that is put where providers are looked for: nothing else of porter knows of it."""
    from porter.agents import providers

    (work / "more").mkdir()
    (work / "more" / "second_for_a_run.py").write_text(f"RIGHT = {RIGHT!r}\n{SECOND}")
    monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(work / "more")])
    monkeypatch.setenv("PORTER_AGENT_PROVIDER", "second_for_a_run")
    assert main([*ARGS, "--agent"]) == 1  # the key of another provider is not for this one
    assert "the agent was not asked: set SECOND_KEY, or api_key_command" in capfd.readouterr().err
    monkeypatch.setenv("SECOND_KEY", "sk-second-4711")
    assert main([*ARGS, "--agent"]) == 0
    assert providers.load("second_for_a_run").ASKED == ["sk-second-4711"]
    assert "hole(" not in Path("ported/vadd4.py").read_text() and "sk-second-4711" not in everything(work / ".porter")
    monkeypatch.setenv("PORTER_AGENT_PROVIDER", "third")
    assert main([*ARGS, "--agent"]) == 2
    err = capfd.readouterr().err
    assert "no provider 'third'" in err and "second_for_a_run" in err
