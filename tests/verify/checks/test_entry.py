"""The torch-facing function of a port is called: faulty ones are refused, right ones pass however they are written."""

from __future__ import annotations

import pytest

from porter.model import Status
from porter.model.facts import EntryFacts
from porter.verify.checks.entry.check import check_entry
from tests.verify.checks.cheats.catalogue import CHEATS
from tests.verify.checks.cheats.entry_faults import ENTRY
from tests.verify.checks.cheats.entry_rights import RIGHTS, WITH_TORCH, written
from tests.verify.checks.cheats.subjects import called, read, sources, subject

FAULTS = [name for name, cheat in CHEATS.items() if cheat.check == ENTRY]
FIRST = (0,)  # one instance of the case will do: the others are what the function may fall back to
OF_OTHERS = {"null-operand": "topk_softmax", "scaled-number": "topk_softmax_general"}

pytestmark = pytest.mark.usefixtures("_dsl")


@pytest.fixture(scope="module")
def _dsl():
    pytest.importorskip("cutlass")


@pytest.fixture(scope="module")
def rms_norm():
    return subject("rms_norm")


def test_the_true_port_passes(rms_norm, tmp_path):
    verdict = called(rms_norm, rms_norm.port.text, tmp_path)
    assert verdict.status is Status.PASS, verdict
    assert verdict.facts == EntryFacts(verdict.facts.calls, ("rms_norm",)) and verdict.facts.calls > 300


@pytest.mark.parametrize("name", [n for n in FAULTS if "torch" not in n])
def test_faults(rms_norm, tmp_path, name):
    of = subject(OF_OTHERS[name]) if name in OF_OTHERS else rms_norm
    made = CHEATS[name].change(of.port, of.case)
    assert made is not None and made.text != of.port.text
    verdict = called(of, made.text, tmp_path, FIRST)
    assert verdict.status is Status.FAIL
    assert any(CHEATS[name].message in d.message for d in verdict.diagnostics), verdict
    first = of.port.text[: of.port.text.index("def launch_config")].count("\n")
    assert all(d.span.line > first and d.help and d.code in ("PRT831", "PRT832", "PRT833") for d in verdict.diagnostics)
    assert len({(d.code, d.message) for d in verdict.diagnostics}) == len(verdict.diagnostics) <= 4


@pytest.mark.parametrize("name", RIGHTS)
def test_rights(rms_norm, tmp_path, name):
    text = written(rms_norm.port, name)
    assert read(rms_norm, text) == []
    verdict = called(rms_norm, text, tmp_path, FIRST)
    assert verdict.status is Status.PASS, verdict


@pytest.mark.parametrize("name", WITH_TORCH)
def test_rights_with_torch(rms_norm, tmp_path, name):
    pytest.importorskip("torch")
    text = written(rms_norm.port, name)
    assert read(rms_norm, text) == []
    verdict = called(rms_norm, text, tmp_path, FIRST)
    assert verdict.status is Status.PASS, verdict


TORCH_FAULTS = {
    "torch.add": "    out = torch.add(out, out)\n",
    "`__add__`": "    out = out + weight\n",
    "torch.softmax": "    torch.softmax(input, -1)\n",
    "fills": "    out.zero_()\n",
    "memory that the function allocates": "    out = torch.zeros_like(out)\n",
    "torch.cat": "    torch.cat([out, input])\n",
    "torch.cuda.synchronize()": "    torch.cuda.synchronize()\n",
}


@pytest.mark.parametrize("said", TORCH_FAULTS)
def test_operators_of_torch_are_seen(rms_norm, tmp_path, said):
    """Also where the port's text would be let through: the mode sees what runs."""
    pytest.importorskip("torch")
    right = written(rms_norm.port, "asks-torch")
    text = right.replace("    args = (", TORCH_FAULTS[said] + "    args = (")
    assert text != right
    verdict = called(rms_norm, text, tmp_path, FIRST)
    assert verdict.status is Status.FAIL and any(said in d.message for d in verdict.diagnostics), verdict


def _first(verdict):
    return verdict.diagnostics[0].message.split(" at ")[0].split(" (and")[0], verdict.diagnostics[0].span.line


def test_in_the_fence(rms_norm, tmp_path):
    """The child that imports the port answers as this process does."""
    for name in ("grid-of-one", "output-zeroed-after"):
        made = CHEATS[name].change(rms_norm.port, rms_norm.case)
        path = tmp_path / f"{name}.py"
        path.write_text(made.text)
        found = check_entry(path, made.text, rms_norm.case, rms_norm.request.info, FIRST)
        other = called(rms_norm, made.text, tmp_path, FIRST)
        assert _first(found) == _first(other)


def test_a_function_that_raises_for_what_the_case_has(rms_norm, tmp_path):
    text = rms_norm.port.in_wrapper("raise ValueError('no')").text
    verdict = called(rms_norm, text, tmp_path, FIRST)
    assert verdict.status is Status.FAIL and "raises at" in verdict.detail and "ValueError: no" in verdict.detail


def test_parameters_that_nothing_names(rms_norm, tmp_path):
    text = rms_norm.port.text.replace("def rms_norm(out, input,", "def rms_norm(out, input, gamma, beta,")
    verdict = called(rms_norm, text, tmp_path, FIRST)
    assert "takes gamma, beta, and the case names no such operand" in verdict.detail


def test_numbers_and_inputs_that_it_does_not_take(rms_norm, tmp_path):
    text = rms_norm.port.text.replace("def rms_norm(out, input, weight, epsilon):", "def rms_norm(out, input):")
    text = text.replace(
        "    scalar_t = runtime.name_of(", "    weight, epsilon = input, 1e-6\n    scalar_t = runtime.name_of("
    )
    said = [d.message for d in called(rms_norm, text, tmp_path, FIRST).diagnostics]
    assert any("does not take weight, an input of the kernel" in m for m in said)
    assert any("does not take epsilon, which only its caller knows" in m for m in said)


def test_a_custom_operator_says_what_it_writes(rms_norm, tmp_path):
    pytest.importorskip("torch")
    text = written(rms_norm.port, "custom-op").replace('mutates_args=("out",)', "mutates_args=()")
    text = text.replace("porter_tests::rms_norm", "porter_tests::rms_norm_pure")
    verdict = called(rms_norm, text, tmp_path, FIRST)
    assert "writes out, which its mutates_args leave out" in verdict.detail


SOMETIMES = {
    "far rows": "if tokens >= 1 << 26:",
    "an odd address": "if out.data_ptr() % 2048 == 0:",
    "operands in another order of memory": "if out.data_ptr() > weight.data_ptr():",
    "the second device": "if out.device.index == 1:",
    "wide strides": "if input_stride > hidden + 64:",
    "a large number": "if epsilon > 2e-6:",
    "a prime length": "if hidden == 257:",
    "one size above a constant": "if tokens == 12289:",
}


@pytest.mark.parametrize("when", SOMETIMES)
def test_faults_that_show_sometimes(rms_norm, tmp_path, when):
    text = rms_norm.port.in_wrapper(SOMETIMES[when], "    grid = (1, 1, 1)").text
    verdict = called(rms_norm, text, tmp_path)
    assert any("launches the grid [1, 1, 1]" in d.message for d in verdict.diagnostics), verdict


def test_a_launch_that_cannot_be_called(rms_norm, tmp_path):
    text = rms_norm.port.text
    at = text.index("def rms_norm(")
    inside = "class Op:\n" + "".join(f"    {line}\n" for line in text[at:].splitlines())
    verdict = called(rms_norm, text[:at] + inside, tmp_path, FIRST)
    assert verdict.status is Status.FAIL and "not by a function that can be called" in verdict.detail
    assert called(rms_norm, text[:at], tmp_path, FIRST).status is Status.SKIP


@pytest.mark.slow
@pytest.mark.parametrize("name", [p.stem for p in sources()])
def test_true_ports_of_all_kernels(tmp_path, name):
    of = subject(name)
    verdict = called(of, of.port.text, tmp_path)
    assert verdict.status is Status.PASS, verdict
