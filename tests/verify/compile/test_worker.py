"""The compile worker: right ports, wrong ports, ports that crash or hang the compiler, launch arithmetic."""

import os
import time
from pathlib import Path

import pytest

pytest.importorskip("cutlass")

from porter.verify import emulator as ptx
from porter.verify.compile import worker
from porter.verify.compile.artifacts import with_path, without_path
from porter.verify.compile.worker import CompileRequest, CompileWorkers, compile_port, launch_shapes
from porter.verify.emulator.decode.lower import lower
from porter.verify.emulator.llvm.engine import guards_of, key_of

GOOD = Path(__file__).parents[2] / "corpus" / "port_scale.py"

TEMPLATE = """
import os
import socket
import time

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import runtime


@cute.kernel
def kernel(out: cute.Pointer, n: Int32):
{body}


@cute.jit
def _launch(out: cute.Pointer, n: Int32, gx: Int32, gy: Int32, gz: Int32, bx: Int32, by: Int32, bz: Int32,
            smem: Int32, stream):
    kernel(out, n).launch(grid=(gx, gy, gz), block=(bx, by, bz), smem=smem, stream=stream)


KERNEL = runtime.Kernel(
    launch=_launch, name="kernel", params=(runtime.Ptr("out", "f32"), runtime.Num("n", "i32"))
)
{more}
"""
REQUEST = CompileRequest({}, "sm_90a")


@pytest.fixture(scope="module")
def workers():
    pool = CompileWorkers()
    yield pool
    pool.close()


@pytest.fixture(scope="module", autouse=True)
def cache_dir(tmp_path_factory):
    before = os.environ.get("PORTER_CACHE")
    os.environ["PORTER_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    os.environ.pop("PORTER_CACHE")
    if before is not None:
        os.environ["PORTER_CACHE"] = before


@pytest.mark.parametrize("body", ["out[0] = 1.0", "out[0] = cute.nosuch(n)"])
def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch, body):
    """Neither porter's folders nor what the DSL makes where it is imported."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    path = write(tmp_path, body)
    pool = CompileWorkers()
    try:
        compile_one(path, pool)
        assert list((tmp_path / "tmp").iterdir()) != []  # a server and a child are there
    finally:
        pool.close()
    assert list((tmp_path / "tmp").iterdir()) == []


def write(folder, body, more="", name="port.py"):
    path = folder / name
    path.write_text(TEMPLATE.format(body="\n".join("    " + line for line in body.splitlines()), more=more))
    return path


def line_of(path, text):
    return next(i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def compile_one(path, workers, **options):
    (result,) = compile_port(path, [REQUEST], workers=workers, **options)
    return result


def test_two_specialisations_for_two_architectures(workers):
    requests = [CompileRequest({"T": t, "VEC": 2}, a) for t in ("bf16", "f32") for a in ("sm_90a", "sm_100a")]
    results = compile_port(GOOD, requests, workers=workers)
    assert [r.request for r in results] == requests and all(r.ok for r in results)
    for r in results:
        assert f".target {r.request.arch}" in r.ptx and f".entry {r.entry}(" in r.ptx
        assert r.registers > 0 and r.spills == r.local_bytes == r.static_smem == 0 and not r.cached
    again = compile_port(GOOD, requests, workers=None)  # from the cache: no child is asked
    assert all(r.cached for r in again) and [r.ptx for r in again] == [r.ptx for r in results]


@pytest.mark.parametrize(
    ("body", "error_id", "line", "message"),
    [
        ("for i in range(n):\n    if out[i] > 3.0:\n        break", "UNSUP_EARLY_EXIT", "break", "Early exit"),
        ("v = Int32(0)\nif n > 3:\n    v = Float32(1)\nout[0] = Float32(v)", "TYPE_UNSTABLE_JOIN", "if n > 3", "`v`"),
        ("out[0] = cute.nosuch(n)", "", "nosuch", "AttributeError: module 'cutlass.cute' has no attribute"),
        ("out[0] = 1.0\ncute.arch.inline_ptx('foo.bar {$r0};', read_only_args=[n])", "", "inline_ptx", "'foo'"),
    ],
)
def test_a_wrong_port_is_an_error_with_its_line(workers, tmp_path, body, error_id, line, message):
    path = write(tmp_path, body)
    result = compile_one(path, workers)
    assert not result.ok and result.error_id == error_id and message in result.error
    assert "\x1b" not in result.error
    assert (result.file, result.line) == (str(path), line_of(path, line))


def test_a_port_that_crashes_the_compiler_is_a_result(workers, tmp_path):
    crash = compile_one(write(tmp_path, "out[0] = Float32(n ** 2)"), workers)
    assert not crash.ok and crash.error_id == "CRASH" and "SIGSEGV" in crash.error
    assert compile_one(write(tmp_path, "out[0] = Float32(n * n)", name="next.py"), workers).ok


def test_a_port_that_hangs_is_a_result(workers, tmp_path):
    start = time.monotonic()
    result = compile_one(write(tmp_path, "out[0] = 1.0", "time.sleep(60)"), workers, timeout=4)
    assert result.error_id == "TIMEOUT" and time.monotonic() - start < 20


def test_what_a_port_prints_and_exits_does_no_harm(workers, tmp_path):
    assert compile_one(write(tmp_path, "out[0] = 1.0", "print('{\"ok\": true}', flush=True)"), workers).ok
    left = compile_one(write(tmp_path, "out[0] = 1.0", "raise SystemExit(3)", name="exits.py"), workers)
    assert not left.ok and "SystemExit" in left.error
    gone = compile_one(write(tmp_path, "out[0] = 1.0", "os._exit(5)", name="gone.py"), workers)
    assert gone.error_id == "CRASH" and "exit code 5" in gone.error


def test_children_see_no_secrets_and_no_network(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("CUDA_API_KEY", "secret")
    pool = CompileWorkers()
    more = "assert 'secret' not in os.environ.values()\nsocket.create_connection(('localhost', 9), timeout=1)"
    path = write(tmp_path, "out[0] = 1.0", more)
    result = compile_one(path, pool)
    pool.close()
    assert not result.ok and "offline" in result.error and result.line == line_of(path, "create_connection")


def test_an_edited_port_and_an_edited_import_are_compiled_anew(workers, tmp_path):
    (tmp_path / "side.py").write_text("VALUE = 3.0\n")
    path = write(tmp_path, "from_side = Float32(VALUE)\nout[0] = from_side", "from side import VALUE")
    assert "0f40400000" in compile_one(path, workers).ptx or "1077936128" in compile_one(path, workers).ptx
    (tmp_path / "side.py").write_text("VALUE = 5.0\n")
    edited = compile_one(path, workers)
    assert not edited.cached and ("0f40A00000" in edited.ptx or "1084227584" in edited.ptx)


def test_syntax_error_and_missing_kernel(workers, tmp_path):
    path = tmp_path / "bad.py"
    path.write_text("x = 1\ndef f(:\n")
    result = compile_one(path, workers)
    assert (result.ok, result.error_id, result.line) == (False, "SYNTAX", 2)
    path.write_text("x = 1\n")
    assert "KERNEL" in compile_one(path, workers).error


def test_launch_shapes(workers, tmp_path):
    more = (
        "def launch_config(n, vec):\n"
        "    return (runtime.sm_count() * n, 1, 1), (128 // vec, 1, 1), 4 * n\n"
    )  # fmt: skip
    path = write(tmp_path, "out[0] = 1.0", more)
    calls = [{"n": 2, "vec": 4}, {"n": 2, "vec": 0}]
    good, bad = launch_shapes(path, calls, sm_count=7, workers=workers)
    assert (good.grid, good.block, good.smem_bytes) == ((14, 1, 1), (32, 1, 1), 8)
    assert "ZeroDivisionError" in bad.error and bad.line == line_of(path, "128 // vec")


def test_the_shared_pool_can_be_warmed():
    worker._shared.close()  # other tests of this process may have left children
    worker.warm()
    server = worker._shared._server
    assert server is not None and server.alive
    worker._shared.close()
    assert not server.alive


@pytest.mark.parametrize("name", ["here.py", "here (1).py"])
def test_a_cached_port_is_at_home_where_it_lies_now(workers, tmp_path, name):
    """The line table names the file that is asked about, not one of an earlier run, and the emulator's code is the
    same for both."""
    made = []
    for folder in ("before", "now"):
        (tmp_path / folder).mkdir()
        path = write(tmp_path / folder, f"out[0] = {len(name)}.0", name=name)
        made.append((path, compile_one(path, workers)))
    (first, before), (second, now) = made
    assert not before.cached and now.cached
    for path, result in made:
        assert f'"{path}"' in result.ptx
    assert str(first) not in now.ptx and str(second) not in before.ptx
    modules = [ptx.load(result.ptx) for _, result in made]
    programs = [lower(m, result.entry) for m, (_, result) in zip(modules, made, strict=True)]
    assert len({key_of(m, p, guards_of(ptx.Checks(), p)) for m, p in zip(modules, programs, strict=True)}) == 1


def test_only_the_port_is_renamed_in_a_line_table():
    text = b'\t.file\t1 "/a/k.py"\n\t.file\t2 "/porter/corpus/lib/k.py"\n\t.file 3 "/a/k.py.old"\n// "/a/k.py"\n'
    kept = without_path(text, Path("/a/k.py"))
    assert kept == text.replace(b'1 "/a/k.py"', b'1 "<port>"')
    assert with_path(kept.decode(), Path("/b/k.py")) == text.decode().replace('1 "/a/k.py"', '1 "/b/k.py"')
