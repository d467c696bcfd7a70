"""Cheats put into a true port: each is caught by the check that is meant for it. All kernels: tools/cheat_sweep.py."""

import json
from pathlib import Path

import pytest

from porter.model import PorterError, Status
from porter.verify.original.nvrtc import require_nvrtc
from tests.verify.checks.cheats.catalogue import HONESTY
from tests.verify.checks.cheats.entry_faults import ENTRY
from tests.verify.checks.cheats.places import FEW
from tests.verify.checks.cheats.subjects import knows_the_seed, read, run, sources, subject
from tests.verify.checks.cheats.values import CHEATS
from tools.cheat_sweep import PAGE, RESULT, SEED, page

KERNEL = "rms_norm"
READ = [name for name, cheat in CHEATS.items() if cheat.check == HONESTY]
RUN = [name for name, cheat in CHEATS.items() if cheat.check != HONESTY and name not in FEW]
PLACES = [name for name in FEW if CHEATS[name].check != HONESTY]
QUICK = ("runs-smid", "wrong-beyond-a-size", "launch-if", "launch-overlaps", "launch-odd-clusters")


@pytest.fixture(scope="module")
def rms_norm():
    return subject(KERNEL)


@pytest.fixture(scope="module")
def running(rms_norm):
    pytest.importorskip("cutlass")
    try:
        require_nvrtc()
    except PorterError as error:
        pytest.skip(str(error))
    return rms_norm


def failed(verdicts):
    return [v.check for v in verdicts if v.status is Status.FAIL]


def test_the_true_port_is_honest(rms_norm):
    assert read(rms_norm, rms_norm.port.text) == []


@pytest.mark.parametrize("name", READ)
def test_read(rms_norm, name):
    cheat = CHEATS[name]
    made = cheat.change(rms_norm.port, rms_norm.case)
    assert made is not None and made.text != rms_norm.port.text
    compile(made.text, "port.py", "exec")
    found = [d for d in read(rms_norm, made.text) if cheat.message in d.message]
    assert found and all(d.span.line > 1 for d in found)


@pytest.mark.parametrize("name", RUN)
def test_run(running, tmp_path, name):
    cheat = CHEATS[name]
    made = cheat.change(running.port, running.case)
    assert made is not None and made.text != running.port.text
    verdicts = run(running, made.text, tmp_path, launches=6)
    if cheat.check == ENTRY and failed(verdicts) == [HONESTY]:
        return  # refused by name already, so that nothing was called
    assert cheat.check in failed(verdicts), verdicts
    said = " ".join(d.message for v in verdicts if v.check == cheat.check for d in v.diagnostics)
    assert cheat.message in said


def places_caught(of, tmp_path, name):
    cheat = CHEATS[name]
    made = cheat.change(of.port, of.case)
    assert made is not None and made.text != of.port.text
    verdicts = run(of, made.text, tmp_path, launches=6, explain=False)
    if cheat.check == ENTRY and failed(verdicts) == [HONESTY]:
        return  # refused by name already, so that nothing was called
    assert cheat.check in failed(verdicts), verdicts
    said = " ".join(d.message for v in verdicts if v.check == cheat.check for d in v.diagnostics)
    assert cheat.message in said


@pytest.mark.parametrize("name", QUICK)
def test_places(running, tmp_path, name):
    places_caught(running, tmp_path, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in PLACES if n not in QUICK])
def test_all_places(running, tmp_path, name):
    kernel = FEW[name][0]
    places_caught(running if kernel == KERNEL else subject(kernel), tmp_path, name)


def test_a_port_that_knows_one_seed_passes_with_it_and_with_no_other(running, tmp_path):
    text = knows_the_seed(running, tmp_path, 7)
    assert text is not None
    assert failed(run(running, text, tmp_path, 7)) in ([], ["numerics"])  # the sizes that its own constants add are new
    assert "numerics" in failed(run(running, text, tmp_path))


def test_the_sweep_is_whole_and_its_page_current():
    rows = json.loads(RESULT.read_text())["rows"]
    assert {r["cheat"] for r in rows} == {*CHEATS, SEED}
    assert all(r["meant"] in r["caught_by"] for r in rows), [r for r in rows if r["meant"] not in r["caught_by"]]
    assert {r["kernel"] for r in rows} == {p.stem for p in sources()}
    assert len({r["cheat"] for r in rows}) >= 12
    assert all(len([r for r in rows if r["cheat"] == name]) >= (1 if name in PLACES else 4) for name in CHEATS)
    fooled = [r for r in rows if r["cheat"] == SEED]
    assert sum(r["with_its_seed"] == [] for r in fooled) >= 4  # with one fixed seed they would have passed
    assert page(rows) in PAGE.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", [p.stem for p in sources()])
def test_every_kernel(tmp_path, name):
    from tools.cheat_sweep import rows

    for row in rows(subject(name), [], Path(tmp_path)):
        assert row["meant"] in row["caught_by"], row
