"""What once crashed porter, hung it or was an internal error: one message with a code and a place, quickly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.robust.harness import run, warm
from tests.robust.inputs import DATA, SCALE, SCALE_CASE, SCALE_PTX, Input

PORT = ("port", "k.cu", "--no-verify", "-o", "out")
EMULATE = ("emulate", "k.ptx", "--case", "k.case.toml", "--args", "x,factor,n")
BODY = "x[i] = x[i] * factor;"


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    warm()


def kernel(statement: str, head: str = "") -> str:
    assert BODY in SCALE
    return head + SCALE.replace(BODY, statement)


SOURCES = {
    "parentheses": (kernel("x[i] = " + "(" * 10_000 + "factor" + ")" * 10_000 + ";"), "PRT968", "parsing k.cu"),
    "unary operators": (kernel("x[i] = " + "- " * 20_000 + "factor;"), "PRT968", "parsing k.cu"),
    "if in if": (kernel("if (n) " * 10_000 + "x[i] = 1;"), "PRT968", "parsing k.cu"),
    "else if": (kernel("if (n) x[i] = 1; else " * 10_000 + "x[i] = 2;"), "PRT968", "parsing k.cu"),
    "pointers of pointers": (
        "__global__ void scale_kernel(float " + "*" * 20_000 + " x, float factor, int n) {}\n",
        "",
        "",
    ),
    "namespaces": ("namespace a {" * 20_000 + SCALE + "}" * 20_000, "PRT967", "nested too deeply"),
    "a pipe": ('#include "pipe.h"\n' + SCALE, "PRT003", "k.cu:1"),
    "a pipe in angles": ("\n#include <pipe.h>\n" + SCALE, "PRT003", "k.cu:2"),
    "a device": ('#include "/dev/zero"\n' + SCALE, "PRT003", "/dev/zero"),
    "a NUL": (SCALE.replace("factor;", "factor\0;"), "", ""),
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources(name: str) -> None:
    text, code, place = SOURCES[name]
    files: dict[str, str | bytes | None] = {"k.cu": text, "k.case.toml": SCALE_CASE}
    command = PORT
    if "pipe" in name and "pointer" not in name:
        files["inc/pipe.h"] = None
        command = (*PORT, "-I", "inc")
    outcome = run(Input("source", 0, command, files))
    assert not outcome.faults, (outcome.faults, outcome.text[-2000:])
    if code:
        assert outcome.code == 2 and code in outcome.codes and place in outcome.text, outcome.text[-2000:]


@pytest.mark.parametrize(
    ("given", "why"), [(None, "a pipe (FIFO)"), (b"//" + b"x" * (33 << 20), "more than 32 MiB"), (b"\xff\xfe", "UTF-8")]
)
@pytest.mark.parametrize("name", ["k.cu", "k.case.toml", "k.ptx", "pyproject.toml"])
def test_files_that_are_no_text(name: str, given: bytes | None, why: str) -> None:
    files: dict[str, str | bytes | None] = {"k.cu": SCALE, "k.case.toml": SCALE_CASE, "k.ptx": SCALE_PTX, name: given}
    outcome = run(Input("source", 0, EMULATE if name == "k.ptx" else (*PORT, "--case", "k.case.toml"), files))
    assert not outcome.faults, (outcome.faults, outcome.text[-2000:])
    if name != "pyproject.toml":  # which is passed over where it cannot be read
        assert outcome.code == 2 and name in outcome.text, outcome.text[-2000:]


@pytest.mark.parametrize("given", [b"import x\xed\xa0\x80\n", b"\xff\xfe", None, b"#" * (33 << 20)])
@pytest.mark.parametrize("command", [("verify", "out", "--no-record"), ("verify", "out"), PORT])
def test_ports_that_are_no_text(command: tuple[str, ...], given: bytes | None) -> None:
    record = (DATA / "scale.port.json").read_text()
    files: dict[str, str | bytes | None] = {"k.cu": SCALE, "k.case.toml": SCALE_CASE, "out/k.port.json": record}
    files["out/k.py"] = given
    outcome = run(Input("port", 0, command, files))
    assert not outcome.faults and outcome.code in (1, 2), (outcome.faults, outcome.text[-2000:])
    assert {"PRT010", "PRT954", "PRT955"} & {*outcome.codes}, outcome.text[-2000:]


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/tty", ".", "/proc/self/mem"])
def test_sources_that_are_devices_or_folders(device: str) -> None:
    outcome = run(Input("source", 0, ("port", device, "-o", "out"), {}))
    assert not outcome.faults and outcome.code == 2 and outcome.codes == ("PRT010",), outcome.text


def replaced(old: str, new: str) -> str:
    assert old in SCALE_CASE
    return SCALE_CASE.replace(old, new, 1)


GRID, SHAPE, SIZES = '"ceil_div(n, 64)"', 'shape = ["n"]', "n = [1, 100]"
CASES = {
    "a tower of powers": (replaced(GRID, '"9 ** 9 ** 9"'), "PRT904", "grid"),
    "a tower of shifts": (replaced(GRID, '"1 << (1 << 40)"'), "PRT904", "grid"),
    "a division by zero": (replaced(GRID, '"1 // 0"'), "PRT904", "grid"),
    "a long product": (replaced(GRID, f'"{"*".join(["n"] * 5000)}"'), "PRT904", "grid"),
    "a size beyond memory": (replaced(SIZES, "n = [18446744073709551616]"), "PRT903", "sizes.n"),
    "10,000 digits": (replaced(SIZES, f"n = [{'9' * 10_000}]"), "PRT900", "digits"),
    "half a million values": (replaced(SIZES, f"n = [{','.join(map(str, range(500_000)))}]"), "PRT903", "sizes.n"),
    "71 dimensions": (replaced(SHAPE, f'shape = [{"1, " * 70}"n"]'), "PRT903", "x.shape"),
    "nested lists": (SCALE_CASE + "z = " + "[" * 20_000 + "]" * 20_000, "PRT900", "nested too deeply"),
    "nested tables": (SCALE_CASE + "z = " + "{a = " * 20_000 + "1" + "}" * 20_000, "PRT900", "nested too deeply"),
    "50,000 dotted keys": (SCALE_CASE + "".join(f"a{k}.b = 1\n" for k in range(50_000)), "PRT900", "20000 keys"),
    "a key of 50,000 steps": (SCALE_CASE + ".".join(["a"] * 50_000) + " = 1\n", "PRT900", "64 steps"),
    "a table of 50,000 steps": (SCALE_CASE + "[" + ".".join(["a"] * 50_000) + "]\n", "PRT900", "64 steps"),
    "a NUL in the source": (replaced("schema = 1", 'schema = 1\nsource = "a\\u0000.cu"'), "PRT903", "source"),
    "a NUL in the reference": (SCALE_CASE + '[reference]\nfunction = "a\\u0000.py:f"\n', "PRT903", "reference"),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    text, code, place = CASES[name]
    outcome = run(Input("case", 0, PORT, {"k.cu": SCALE, "k.case.toml": text}))
    assert not outcome.faults and outcome.cpu < 5, (outcome.faults, outcome.cpu, outcome.text[-2000:])
    assert outcome.code == 2 and code in outcome.codes and place in outcome.text, outcome.text[-2000:]


EMULATED = {
    "2^33 elements": (replaced(SIZES, "n = [8589934592]"), ("PRT967",)),
    "2^40 elements": (replaced(SHAPE, 'shape = ["n", "n * 4294967296"]'), ("PRT904",)),
    "1e308 blocks": (replaced(GRID, "1e308"), ("PRT904",)),
    "2^31 blocks": (replaced(GRID, "2147483647"), ()),
    "40 sizes of 50": (replaced(SIZES, SIZES + "".join(f"\ns{k} = {list(range(50))}" for k in range(40))), ()),
    "40 scalars of 50": (
        replaced('n = "n"', 'n = "n"' + "".join(f"\ns{k} = {list(range(50))}" for k in range(40))),
        (),
    ),
}


@pytest.mark.parametrize("name", EMULATED)
def test_cases_at_their_points(name: str) -> None:
    text, codes = EMULATED[name]
    outcome = run(Input("case", 0, (*EMULATE, "--checks", "none"), {"k.ptx": SCALE_PTX, "k.case.toml": text}))
    assert not outcome.faults, (outcome.faults, outcome.text[-2000:])
    assert outcome.codes == codes or not codes, outcome.text[-2000:]


@pytest.mark.parametrize("command", [PORT, ("review", "out", "--check")])
@pytest.mark.parametrize(
    "record",
    ["[" * 100_000, '{"a":' * 100_000, '{"schema": ' + "9" * 10_000 + "}", None, b"\xff", "null", '{"schema": 1}'],
    ids=["lists", "objects", "digits", "pipe", "bytes", "null", "empty"],
)
def test_records(command: tuple[str, ...], record: str | bytes | None) -> None:
    files: dict[str, str | bytes | None] = {"k.cu": SCALE, "k.case.toml": SCALE_CASE}
    files |= {"out/k.py": "x = 1\n", "out/k.port.json": record}
    outcome = run(Input("record", 0, command, files))
    assert not outcome.faults and outcome.code in (1, 2), (outcome.faults, outcome.text[-2000:])


@pytest.mark.parametrize("threads", [1, 64])
def test_ptx_that_never_ends(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from porter.verify.emulator import launching

    monkeypatch.setattr(launching, "DEFAULT_SECONDS", 0.5)
    text = SCALE_PTX.replace("$done:\n", "$done:\n$again:\n  add.s32 %r6, %r6, 1;\n  bra $again;\n")
    case = SCALE_CASE.replace("block = [64", f"block = [{threads}")
    files: dict[str, str | bytes | None] = {"k.ptx": text, "k.case.toml": case}
    outcome = run(Input("ptx", 0, (*EMULATE, "--backend", "numpy"), files))
    assert not outcome.faults and outcome.code == 1 and "budget" in outcome.text, outcome.text
    assert outcome.cpu < 4


LIMITED = "[tool.porter]\ncpu_limit = 1\nmemory_limit = 2\n"


MACROS = "#define M0 x[i] +\n" + "".join(f"#define M{k + 1} M{k} M{k}\n" for k in range(30))
LOOPS = (
    "constexpr int f(int n) { int s = 0; for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) s ^= j; return s; }\n"
)
LOOPS += "static_assert(f(1 << 20) == 0);\n"


@pytest.mark.parametrize("head", [MACROS, LOOPS], ids=["macros", "loops"])
def test_limits_count_cpu_time(head: str) -> None:
    text = kernel("x[i] = M30 factor;", head) if "M30" in head else kernel("x[i] = factor;", head)
    files: dict[str, str | bytes | None] = {"k.cu": text, "k.case.toml": SCALE_CASE, "pyproject.toml": LIMITED}
    outcome = run(Input("source", 0, PORT, files))
    assert not outcome.faults and outcome.cpu < 8, (outcome.faults, outcome.text[-2000:])
    assert outcome.code == 0 or outcome.codes == ("PRT967",), outcome.text[-2000:]


# ---------------------------------------------------------------- the program

ROOT = Path(__file__).resolve().parents[2]


def default_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def program(*arguments: str, **more: object) -> subprocess.Popen[str]:
    # the shell's own handling of Ctrl-C, whatever started these tests has
    return subprocess.Popen(
        [sys.executable, "-m", "porter", *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, preexec_fn=default_interrupts,
        **{"stdout": subprocess.PIPE, **more},  # type: ignore[call-overload]
    )  # fmt: skip


@pytest.mark.parametrize("after", [0.4, 1.2])
@pytest.mark.parametrize("whole_group", [False, True])
def test_an_interrupt_is_exit_code_130_from_the_start(tmp_path: Path, after: float, whole_group: bool) -> None:
    (tmp_path / "k.cu").write_text(SCALE)
    (tmp_path / "k.case.toml").write_text(SCALE_CASE)
    process = program("port", str(tmp_path / "k.cu"), "-o", str(tmp_path / "out"))
    time.sleep(after)
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said and process.returncode in (130, -signal.SIGINT, 0), (process.returncode, said)
    assert process.returncode == 0 or "interrupted" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_goes_on_when_the_parent_is_ended(tmp_path: Path, number: int) -> None:
    process = program("port", "/dev/stdin", stdin=subprocess.PIPE)
    time.sleep(0.2)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == -number
    deadline = time.monotonic() + 20
    while left := [p for p in Path("/proc").glob("[0-9]*/stat") if _session(p) == process.pid]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def _session(path: Path) -> int:
    try:
        return int(path.read_text().rpartition(")")[2].split()[3])
    except (OSError, IndexError, ValueError):
        return 0


def test_a_closed_or_full_stdout_is_a_message() -> None:
    full = open("/dev/full", "w")  # noqa: SIM115
    for stdout in (full, None):
        arguments = ["sh", "-c", f"exec {sys.executable} -m porter explain PRT010 {'' if stdout else '>&-'}"]
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(arguments, stdout=stdout, stderr=subprocess.PIPE, text=True, env=env, timeout=60)
        assert done.returncode == 2 and "PRT953" in done.stderr and "Traceback" not in done.stderr, done.stderr
    full.close()


@pytest.mark.parametrize("library", ["", "not a library", None])
def test_a_broken_libclang_is_a_message(tmp_path: Path, library: str | None) -> None:
    broken = tmp_path / "libclang.so"
    if library is not None:
        broken.write_text(library)
    code = "import sys\nimport clang.cindex as c\nc.Config.library_file = sys.argv.pop(1)\n"
    code += "from porter.cli import main\nsys.exit(main(sys.argv[1:]))\n"
    (tmp_path / "k.cu").write_text(SCALE)
    command = [sys.executable, "-c", code, str(broken), "port", str(tmp_path / "k.cu"), "--no-verify"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 2 and "PRT009" in done.stderr and "PRT950" not in done.stderr, done.stderr
