"""The fence around ports: what gets past the reading of its text still reaches nothing. Every case runs in a child."""

import os
import time
from pathlib import Path

import pytest

pytest.importorskip("cutlass")

from porter.corpus.runtime import ArtifactCache
from porter.verify.compile.artifacts import checked
from porter.verify.compile.fence import available_layers
from porter.verify.compile.fence.landlock import landlock_version
from porter.verify.compile.fence.raising import installed
from porter.verify.compile.fence.seccomp import has_seccomp
from porter.verify.compile.worker import CompileRequest, CompileWorkers, compile_port, launch_shapes
from tests.verify.compile.test_worker import TEMPLATE, line_of

REQUEST = CompileRequest({}, "sm_90a")
LIBC = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
landlock = pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
seccomp = pytest.mark.skipif(not has_seccomp(), reason="this system has no seccomp")


@pytest.fixture(scope="module")
def workers():
    pool = CompileWorkers()
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a key in it, as the verifier's own process has one."""
    folder = tmp_path_factory.mktemp("home")
    (folder / ".ssh").mkdir()
    (folder / ".ssh" / "id_rsa").write_text("secret key")
    return folder


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory, home):
    patch = pytest.MonkeyPatch()
    patch.setenv("PORTER_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    patch.setenv("HF_TOKEN", "secret")
    yield
    patch.undo()


def compile_with(more, workers, folder, body="out[0] = 1.0", timeout=60.0):
    path = folder / "port.py"
    path.write_text(TEMPLATE.format(body="    " + body, more=more))
    (result,) = compile_port(path, [REQUEST], workers=workers, timeout=timeout)
    return result


REFUSED = {
    "reads a key": ("open('{home}/.ssh/id_rsa').read()", "ports read nothing"),
    "reads a key, low": ("os.open('{home}/.ssh/id_rsa', os.O_RDONLY)", "ports read nothing"),
    "looks around at home": ("os.listdir('{home}')", "ports read nothing"),
    "reads the parent's environment": ("open(f'/proc/{{os.getppid()}}/environ').read()", "ports read nothing"),
    "writes at home": ("open('{home}/.bashrc', 'a')", "ports write nothing"),
    "writes over itself": ("open(__file__, 'w')", "ports write nothing"),
    "writes over porter": ("import porter\nopen(porter.__file__, 'a')", "ports write nothing"),
    "deletes": ("os.remove('{home}/.ssh/id_rsa')", "ports change nothing"),
    "renames": ("os.rename('{home}/.ssh', '{home}/ssh')", "ports change nothing"),
    "links": ("os.symlink('{home}/.ssh/id_rsa', '{home}/x')", "ports change nothing"),
    "opens a socket": ("socket.socket()", "offline"),
    "asks for a name": ("socket.getaddrinfo('example.com', 80)", "offline"),
    "forks": ("os.fork()", "os.fork"),
    "starts a process": ("import subprocess\nsubprocess.run(['true'])", "subprocess.Popen"),
    "runs a shell": ("os.system('true')", "os.system"),
    "replaces itself": ("os.execv('/bin/true', ['true'])", "os.exec"),
    "kills its parent": ("os.kill(os.getppid(), 9)", "os.kill"),
    "raises its limits": ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "resource.setrlimit"),
    "loads a library": ("import ctypes\nctypes.CDLL('{home}/evil.so')", "ports read nothing"),
    "a memory bomb": ("x = bytearray(1 << 42)", "MemoryError"),
    "endless output": ("while True: print('x' * 1000000)", "File too large"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_line(workers, tmp_path, home, name):
    more, message = REFUSED[name]
    more = more.format(home=home)
    result = compile_with(more, workers, tmp_path)
    assert not result.ok and message in result.error, result.error
    assert result.line == line_of(tmp_path / "port.py", more.splitlines()[-1])
    assert (home / ".ssh" / "id_rsa").read_text() == "secret key" and sorted(os.listdir(home)) == [".ssh"]


BELOW_PYTHON = {
    "reads": ("assert libc.open(b'{home}/.ssh/id_rsa', 0) < 0", landlock),
    "writes": ("assert libc.open(b'{home}/x', 0o101, 0o600) < 0", landlock),
    "deletes": ("assert libc.unlink(b'{home}/.ssh/id_rsa') < 0", landlock),
    "truncates": ("assert libc.truncate(b'{home}/.ssh/id_rsa', 0) < 0", landlock),
    "reads another process": ("assert libc.open(f'/proc/{{os.getppid()}}/environ'.encode(), 0) < 0", landlock),
    "sockets": ("assert libc.socket(2, 1, 0) < 0 and libc.socketpair(1, 1, 0, (ctypes.c_int * 2)()) < 0", seccomp),
    "processes": ("assert libc.fork() < 0 and libc.vfork() < 0", seccomp),
    "programs": ("assert libc.system(b'true') != 0 and libc.execv(b'/bin/true', None) < 0", seccomp),
    "signals": ("assert libc.kill(os.getppid(), 0) < 0 and libc.kill(-1, 0) < 0", seccomp),
    "limits": ("assert libc.setrlimit(9, (ctypes.c_ulong * 2)(1 << 50, 1 << 50)) < 0", seccomp),
    "modes": (
        "key = b'{home}/.ssh/id_rsa'\n"
        "assert libc.chmod(key, 0) < 0 and libc.fchmodat(-100, key, 0, 0) < 0\n"
        "assert libc.syscall(452, -100, key, 0, 0) < 0\n"
        "file = os.open(os.__file__, os.O_RDONLY)\n"
        "assert libc.fchmod(file, 0o644) < 0 and libc.fchown(file, -1, -1) < 0 and libc.futimens(file, None) < 0",
        seccomp,
    ),
    "owners": (
        "key = b'{home}/.ssh/id_rsa'\n"
        "assert libc.chown(key, -1, -1) < 0 and libc.lchown(key, -1, -1) < 0\n"
        "assert libc.fchownat(-100, key, -1, -1, 0) < 0",
        seccomp,
    ),
    "times": (
        "key = b'{home}/.ssh/id_rsa'\n"
        "assert libc.utime(key, None) < 0 and libc.utimes(key, None) < 0 and libc.utimensat(-100, key, None, 0) < 0",
        seccomp,
    ),
    "attributes": (
        "key = b'{home}/.ssh/id_rsa'\n"
        "assert libc.setxattr(key, b'user.x', b'1', 1, 0) < 0 and ctypes.get_errno() == 1\n"
        "assert libc.removexattr(key, b'user.x') < 0 and ctypes.get_errno() == 1\n"
        "flags = ctypes.c_long(0x40)\n"
        "assert libc.ioctl(os.open(os.__file__, 0), ctypes.c_ulong(0x40086602), ctypes.byref(flags)) < 0\n"
        "assert ctypes.get_errno() == 1",
        seccomp,
    ),
    "priorities": (
        "parent = os.getppid()\n"
        "assert libc.setpriority(0, parent, 19) < 0 and libc.sched_setscheduler(parent, 0, None) < 0\n"
        "mask = ctypes.create_string_buffer(b'\\x01', 128)\n"
        "assert libc.sched_setaffinity(parent, 128, mask) < 0 and ctypes.get_errno() == 1\n"
        "assert libc.prlimit(parent, 0, (ctypes.c_ulong * 2)(1, 1), None) < 0 and ctypes.get_errno() == 1",
        seccomp,
    ),
    "debugging": ("assert libc.ptrace(16, os.getppid(), 0, 0) < 0", seccomp),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks) for name, (_, marks) in BELOW_PYTHON.items()]
)  # fmt: skip
def test_the_system_refuses_what_goes_round_python(workers, tmp_path, home, name):
    result = compile_with(LIBC + BELOW_PYTHON[name][0].format(home=home), workers, tmp_path)
    assert result.ok, result.error
    assert (home / ".ssh" / "id_rsa").read_text() == "secret key" and sorted(os.listdir(home)) == [".ssh"]


FULL = """
n = 0
while True:
    {inside}
    with open(os.path.join({folder}, str(n)), 'wb') as f:
        for _ in range(100): f.write(b'x' * (1 << 20))
    n += 1
"""


@pytest.mark.parametrize(
    ("inside", "folder"),
    [("pass", "os.environ['HOME']"), ("d = os.path.join(os.environ['HOME'], str(n) + 'd'); os.mkdir(d)", "d")],
)
def test_a_folder_that_grows_without_end_ends_the_child(workers, tmp_path, inside, folder):
    result = compile_with(FULL.format(inside=inside, folder=folder), workers, tmp_path)
    assert not result.ok and "more than 512 MiB" in result.error, result.error


def test_threads_and_its_own_folder_are_left_to_it(workers, tmp_path):
    more = (
        "import tempfile, threading\n"
        "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
        "with tempfile.NamedTemporaryFile() as f: f.write(b'x')\n"
        "open(os.path.join(os.environ['HOME'], 'x'), 'w').write('x')\n"
        "assert not [p for p in os.listdir(os.environ['HOME']) if p.startswith('.')]\n"
        "assert not [k for k, v in os.environ.items() if 'secret' in v], os.environ"
    )
    result = compile_with(more, workers, tmp_path)
    assert result.ok, result.error


def test_endless_loops_end_at_import_and_while_tracing(workers, tmp_path):
    for more, body in (("while True: pass", "out[0] = 1.0"), ("", "while cutlass.const_expr(True): pass")):
        start = time.monotonic()
        result = compile_with(more, workers, tmp_path, body, timeout=2.0)
        assert result.error_id == "TIMEOUT" and time.monotonic() - start < 8, result


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("os._exit(0)", "exit code 0"),
        (LIBC + "ctypes.string_at(0)", "SIGSEGV"),
        ("os.abort()", "SIGABRT"),
        ("os.write(3, b'nonsense\\n'); os._exit(0)", "an invalid answer"),
        ('os.write(3, b\'{"ok": true, "seconds": 0, "folder": "../../.."}\\n\'); os._exit(0)', "not a folder of"),
        ('os.write(3, b\'{"ok": true, "seconds": 0, "folder": "x"}\\n\'); os._exit(0)', "no such file"),
        ("while True: os.write(3, b'x' * 65536)", "endless"),
    ],
)
def test_what_it_does_to_its_own_process_is_an_answer(workers, tmp_path, more, message):
    result = compile_with(more, workers, tmp_path)
    assert not result.ok and result.error_id == "CRASH" and message in result.error, result.error
    assert compile_with("", workers, tmp_path).ok


def test_a_forged_answer_cannot_make_the_parent_read_elsewhere(workers, tmp_path, home):
    forged = (
        "d = os.path.join(os.environ['PORTER_CACHE'], 'x'); os.makedirs(d)\n"
        f"os.symlink('{home}/.ssh/id_rsa', os.path.join(d, 'kernel.ptx'))\n"
        'os.write(3, b\'{"ok": true, "seconds": 0, "folder": "x"}\\n\')\n'
        "import time; time.sleep(1); os._exit(0)"
    )
    result = compile_with(forged, workers, tmp_path)
    assert not result.ok and "no such file" in result.error and "secret" not in result.error


def test_one_port_cannot_change_what_the_next_one_compiles_to(workers, tmp_path):
    """Neither through the modules of the process nor through the cache."""
    good = tmp_path / "good.py"
    good.write_text(TEMPLATE.format(body="    out[0] = 2.0", more=""))
    (before,) = compile_port(good, [REQUEST], workers=workers)
    good.write_text(good.read_text() + "\n")  # another text, to be compiled anew after the hostile one
    hostile = (
        "from porter.corpus.runtime import cache, kernel\n"
        "kernel.dsl.build = None\n"
        "cutlass.Float32.__init__ = None\n"
        "cache.ArtifactCache.put = lambda *a: None\n"
    )
    result = compile_with(hostile, workers, tmp_path)
    assert not result.ok
    (after,) = compile_port(good, [REQUEST], workers=workers)
    assert after.ok and not after.cached
    assert [line for line in after.ptx.splitlines() if "st.global" in line] == [
        line for line in before.ptx.splitlines() if "st.global" in line
    ]


def test_an_entry_of_the_cache_is_made_by_the_parent(workers, tmp_path):
    """A child that writes into what it believes to be the cache leaves nothing in the real one."""
    real = ArtifactCache("compiled")
    before = set(real.folder.glob("*/*")) if real.folder.is_dir() else set()
    more = (
        "from porter.corpus.runtime import ArtifactCache\n"
        "for n in range(16): ArtifactCache('compiled').put(f'{n:064x}', {'kernel.ptx': b'forged'})\n"
    )
    assert compile_with(more, workers, tmp_path).ok
    new = {p for p in real.folder.glob("*/*") if p.is_dir()} - before
    assert len(new) == 1 and not any(p.name.startswith("0000") for p in new)


def test_what_a_child_says_of_resources_is_read_off_the_code(workers, tmp_path):
    lie = (
        "import porter.corpus.runtime.dsl as dsl\n"
        "honest = dsl._resources\n"
        "dsl._resources = lambda cubin, notes: {k: dsl.Resources(1, 0, 0, 0, 0) for k in honest(cubin, notes)}\n"
    )
    body = "s = cute.arch.alloc_smem(Float32, 64)\n    s[n] = 1.0\n    cute.arch.sync_threads()\n    out[0] = s[n + 1]"
    told = compile_with(lie, workers, tmp_path, body)
    assert told.ok and told.registers > 1 and told.static_smem >= 256
    with pytest.raises(ValueError, match=r"cannot be read|not a"):
        checked({"kernel.ptx": b".entry k(", "kernel.cubin": b"\x7fELF\x02", "meta.json": b"{}"}, "sm_90a")


def test_launch_shapes_are_checked_for_being_shapes(workers, tmp_path):
    path = tmp_path / "port.py"
    more = "def launch_config(n):\n    return ('a', 1, 1), (1, 1, 1), 0\n"
    path.write_text(TEMPLATE.format(body="    out[0] = 1.0", more=more))
    (shape,) = launch_shapes(path, [{"n": 1}], workers=workers)
    assert "ValueError" in shape.error


def test_the_layers_are_named():
    layers = available_layers()
    assert layers[0].startswith("limits") and layers[-1] == "audit hook"
    assert any("Landlock" in layer for layer in layers) == bool(landlock_version())


def test_a_server_ends_with_its_pool(tmp_path):
    pool = CompileWorkers()
    assert compile_with("", pool, tmp_path, "out[0] = 7.0").ok
    assert pool._server is not None
    (child,) = [child for _, child in pool._idle]
    server, folder = pool._server, child.folder
    assert folder.is_dir()
    pool.close()
    assert not server.alive and not folder.exists()


def test_paths_of_the_project_are_not_read(workers, tmp_path):
    secret = Path(__file__).parents[3] / "README.md"  # stands for a .env beside the project's packages
    result = compile_with(f"open({str(secret)!r}).read()", workers, tmp_path)
    assert not result.ok and "ports read nothing" in result.error


def test_what_pip_installed_into_a_folder_is_read_and_a_project_is_not(tmp_path, monkeypatch):
    """`pip install --target FOLDER` with FOLDER in PYTHONPATH, as on machines without a network."""
    target, project = tmp_path / "target", tmp_path / "project"
    record = target / "some-1.0.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("")
    project.mkdir()
    monkeypatch.syspath_prepend(str(target))
    monkeypatch.syspath_prepend(str(project))
    assert target.resolve() in installed()
    assert project.resolve() not in installed()
