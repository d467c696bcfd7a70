"""Runs that start from a port which a person, or an earlier run, has edited: verified first, and never lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from porter.cli import main
from porter.provenance.store import is_edited, read_record
from tests.agents.messages_server import Fail, Say, call, script, serving
from tests.agents.test_launch import DATA as WIDE
from tests.agents.test_real_verifier import RIGHT
from tests.agents.test_real_verifier import TASK as VADD4

pytest.importorskip("anthropic", reason="needs the extra `agent`")
pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")

BODY = "    for c in range(tidx, cols, bdimx):\n"
MINE = "    # a person was here\n"
PORT = Path("ported/wide_block.py")
DONE = Say([call("give_up", reason="nothing more")])
FASTER = Say(
    [call("replace_launch", grid="rows", block="min(round_up(cols, 32), 1024)", shared_bytes="0"), call("verify")]
)


@pytest.fixture
def work(tmp_path, monkeypatch):
    for name in ("wide_block.cu", "wide_block.case.toml"):
        shutil.copy(WIDE / name, tmp_path)
    for name in ("vadd4.cu", "vadd4.case.toml"):
        shutil.copy(VADD4 / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    return tmp_path


@pytest.fixture
def edited(work, capsys):
    """A port with a line of a person's in it; gives its text."""
    assert main(["port", "wide_block.cu", "--arch", "sm_90a"]) == 0
    text = PORT.read_text()
    assert BODY in text
    PORT.write_text(text.replace(BODY, MINE + BODY))
    capsys.readouterr()
    return PORT.read_text()


def port(url: str, *more: str, kernel: str = "wide_block.cu", how: str = "--optimise") -> int:
    return main(["port", kernel, how, "--base-url", url, "--arch", "sm_90a", "--seed", "7", *more])


def results() -> list[dict]:
    return [json.loads(p.read_text()) for p in sorted(Path(".porter/runs").glob("*/result.json"))]


def asked(served, number: int = 0) -> str:
    return served.requests[number]["messages"][0]["content"][0]["text"]


def test_a_verified_edit_is_the_start_and_stays(edited, capsys):
    with serving(script(FASTER, DONE)) as served:
        assert port(served.url) == 0
        assert MINE.strip() in asked(served)
    assert "starts from ported/wide_block.py as it is" in capsys.readouterr().err
    text = PORT.read_text()
    assert MINE in text and "launch_config(rows=rows, cols=cols)" in text and results()[0]["state"] == "improved"
    record = read_record(PORT)
    assert record is not None and is_edited(PORT)
    authors = {e.author for e in record.line_map}
    assert "person" in authors and any(not a.startswith(("person", "agent")) for a in authors)
    assert main(["port", "wide_block.cu", "--arch", "sm_90a"]) == 2  # translating again throws nothing away
    assert PORT.read_text() == text
    # and the next run starts where this one ended
    with serving(script(DONE)) as served:
        assert port(served.url) == 0
        assert MINE.strip() in asked(served) and "launch_config(rows=rows, cols=cols)" in asked(served)
    assert PORT.read_text() == text


def test_an_edit_that_is_not_verified_is_not_optimised(edited, capsys):
    wrong = edited.replace("* 2.0", "* 3.0")
    assert wrong != edited
    PORT.write_text(wrong)
    with serving(script(FASTER)) as served:
        assert port(served.url) == 1
        assert served.requests == []
    assert PORT.read_text() == wrong and "numerics" in "".join(capsys.readouterr())
    with serving(script(Say([call("read_region", region="port")]), DONE)) as served:  # but it can be repaired
        assert port(served.url, how="--agent") == 1
        assert "* 3.0" in asked(served) and "numerics FAIL" in asked(served)


def test_force_starts_from_the_translators(edited):
    with serving(script(DONE)) as served:
        assert port(served.url, "--force") == 0
        assert MINE.strip() not in asked(served)
    assert MINE not in PORT.read_text()


def test_what_is_not_a_port_or_not_python_is_refused_as_before(edited):
    PORT.write_text("def (")
    with serving(script(FASTER)) as served:
        assert port(served.url) == 2
        PORT.write_text(edited)
        PORT.with_name("wide_block.port.json").unlink()
        assert port(served.url) == 2
        assert served.requests == []


def test_the_prompt_that_is_shown_has_the_edit(edited, capsys):
    assert main(["port", "wide_block.cu", "--optimise", "--show-prompt", "--arch", "sm_90a"]) == 0
    assert MINE.strip() in capsys.readouterr().out


def test_a_hole_that_a_person_filled_wrong_is_repaired(work):
    assert main(["port", "vadd4.cu", "--arch", "sm_90a"]) == 1
    path = Path("ported/vadd4.py")
    lines = path.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if "runtime.hole(1" in line)
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    path.write_text("\n".join([*lines[:at], f"{indent}out[i] = Uint32(a[i]) + Uint32(b[i])", *lines[at + 1 :]]) + "\n")
    body = path.read_text()
    start = "i = cute.arch.block_idx()[0] * lib.block_dim()[0] + cute.arch.thread_idx()[0]\nif i < n:\n"
    start += "".join(f"    {line}\n" for line in RIGHT.splitlines())
    with serving(script(Say([call("replace_region", region="body:vadd4", code=start), call("verify")]))) as served:
        assert port(served.url, kernel="vadd4.cu", how="--agent") == 0
        assert "## Holes" not in asked(served) and "hole-1" not in asked(served)
        assert "Uint32(a[i]) + Uint32(b[i])" in asked(served)
    assert path.read_text() != body and results()[0]["state"] == "verified"
    record = read_record(path)
    assert record is not None and not record.holes and record.extra["agent"]["kept"][0]["fixed"] == "numerics"


def test_resumed_and_refused_when_the_port_changed_meanwhile(edited, capsys):
    with serving(script(Fail(401, "authentication_error"))) as served:
        assert port(served.url) == 0  # verified as it is; the run got no answer
    (run,) = Path(".porter/runs").iterdir()
    with serving(script(FASTER, DONE)) as served:
        manifest = json.loads((run / "run.json").read_text())
        manifest["settings"]["base_url"] = served.url
        (run / "run.json").write_text(json.dumps(manifest))
        PORT.write_text(edited + "# and again\n")
        assert main(["agent", "resume", run.name]) == 2
        assert "PRT954" in "".join(capsys.readouterr()) and PORT.read_text() == edited + "# and again\n"
        PORT.write_text(edited)
        assert main(["agent", "resume", run.name]) == 0
        assert len(served.requests) == 2  # the second time from the record
    text = PORT.read_text()
    assert MINE in text and "launch_config(rows=rows, cols=cols)" in text
    assert main(["agent", "resume", run.name]) == 0 and PORT.read_text() == text
    (run / "translated.py").write_text("something else\n")
    assert main(["agent", "resume", run.name]) == 2  # the translator is not what it was


class Killed(BaseException):
    """kill -9, for a test in one process."""


@pytest.mark.parametrize("after", [False, True])
def test_a_stop_while_it_is_written_never_makes_the_edit_porters(edited, monkeypatch, after):
    import porter.provenance.store

    with serving(script(FASTER, DONE)) as served:
        assert port(served.url) == 0
    (run,) = Path(".porter/runs").iterdir()
    final, real = PORT.read_text(), porter.provenance.store.write_atomic
    record = PORT.with_name("wide_block.port.json")
    written = record.read_text()
    for die_at in range(2):  # record, port
        PORT.write_text(edited)
        calls = iter(range(10))

        def mortal(path, text, calls=calls, die_at=die_at):
            mine = next(calls) == die_at
            if mine and not after:
                raise Killed
            real(path, text)
            if mine:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(porter.provenance.store, "write_atomic", mortal)
            with pytest.raises(Killed):
                main(["agent", "resume", run.name])
        assert PORT.read_text() in (edited, final) and is_edited(PORT)
        assert main(["port", "wide_block.cu", "--no-verify"]) == 2  # not overwritten
        assert main(["agent", "resume", run.name]) == 0
        assert PORT.read_text() == final
    assert json.loads(record.read_text())["port"]["sha256"] == json.loads(written)["port"]["sha256"]


def test_candidates_start_from_it_too(edited):
    with serving(script(DONE)) as served:
        assert port(served.url, "--candidates", "2") == 0
        assert all(MINE.strip() in asked(served, n) for n in (0, 1))
    assert PORT.read_text() == edited
