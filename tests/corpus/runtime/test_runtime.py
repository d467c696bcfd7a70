"""The runtime of ports: cache, compile, what is read from the result, and what a launch refuses."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from porter.corpus import runtime
from porter.corpus.runtime import dsl
from porter.corpus.runtime.cache import ArtifactCache, digest
from porter.corpus.runtime.sources import source_closure

PORT = Path(__file__).parents[1] / "port_scale.py"


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("PORTER_CACHE")
    os.environ["PORTER_CACHE"] = str(folder)
    yield folder
    os.environ.pop("PORTER_CACHE")
    if before is not None:
        os.environ["PORTER_CACHE"] = before


@pytest.fixture(scope="module")
def port(cache_dir):
    pytest.importorskip("cutlass")
    spec = importlib.util.spec_from_file_location("port_scale", PORT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["port_scale"] = module
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------- cache


def test_digest_keeps_parts_apart():
    assert digest(["ab", "c"]) != digest(["a", "bc"])


def test_an_entry_is_built_once(tmp_path):
    cache, calls = ArtifactCache("k", tmp_path), []

    def build(folder):
        calls.append(1)
        (folder / "x").write_text("data")

    first = cache.get_or_build("ab12", build)
    assert cache.get_or_build("ab12", build) == first and calls == [1]
    assert (first / "x").read_text() == "data"


def test_a_failed_build_leaves_nothing(tmp_path):
    cache = ArtifactCache("k", tmp_path)

    def build(folder):
        (folder / "x").write_text("half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        cache.get_or_build("ab12", build)
    assert cache.get("ab12") is None
    assert not [p for p in tmp_path.rglob("*") if p.is_dir() and p.name.startswith(".building")]


@pytest.mark.parametrize("damage", ["truncate", "delete", "manifest"])
def test_a_damaged_entry_is_rebuilt(tmp_path, damage):
    cache = ArtifactCache("k", tmp_path)
    path = cache.put("ab12", {"x": b"good", "y": b"too"})
    if damage == "truncate":
        (path / "x").write_bytes(b"go")
    elif damage == "delete":
        (path / "y").unlink()
    else:
        (path / "manifest.json").write_text("{")
    assert cache.get("ab12") is None
    assert (cache.put("ab12", {"x": b"good", "y": b"too"}) / "x").read_bytes() == b"good"
    assert cache.get("ab12") is not None


def test_threads_that_want_one_key_build_it_once(tmp_path):
    calls = []

    def work():
        def build(folder):
            calls.append(1)
            (folder / "x").write_text("1")

        ArtifactCache("k", tmp_path).get_or_build("ab12", build)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert calls == [1]


def test_prune_drops_what_was_used_longest_ago(tmp_path):
    cache = ArtifactCache("k", tmp_path)
    for i, key in enumerate(["aa", "bb", "cc"]):
        path = cache.put(key, {"x": b"0" * 1000})
        os.utime(path / "manifest.json", (i, i))
    cache.get("aa")  # now the most recent
    assert cache.prune(cache.size() - 1, keep_seconds=0) > 1000
    assert cache.get("bb") is None and cache.get("aa") is not None and cache.get("cc") is not None


def test_prune_clears_away_what_killed_builders_left(tmp_path):
    cache = ArtifactCache("k", tmp_path)
    folder = cache.put("ab12", {"x": b"1"}).parent
    for name, age in ((".building-old", 7200), (".damaged-old", 7200), (".building-new", 0)):
        (folder / name).mkdir()
        os.utime(folder / name, (time.time() - age,) * 2)
    cache.prune(1 << 40)
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith(".")) == [".building-new"]


def test_an_unusable_root_is_replaced_with_a_warning(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="cannot be written"):
        assert runtime.cache_root().is_dir()


# ---------------------------------------------------------------- tables and sources


def test_arch_names():
    names = [runtime.arch_of_capability(*c) for c in [(8, 0), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0)]]
    assert names == ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"]


def test_importing_the_runtime_imports_neither_cutlass_nor_torch():
    assert _imported("from porter.corpus import runtime") == []


def test_importing_a_kernel_does_not_import_torch():
    """Compile workers start a second earlier without it, and the library is for ports, which may not have it."""
    pytest.importorskip("cutlass")
    assert _imported("from porter.corpus.kernels.norm import rms_norm; from porter.corpus import lib") == ["cutlass"]


def _imported(statement):
    code = f"{statement}; import sys; print(*sorted({{'torch', 'cutlass'}} & set(sys.modules)))"
    root = Path(runtime.__file__).parents[3]
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    return out.stdout.split()


def test_every_dtype_exists_in_cutlass_and_torch():
    pytest.importorskip("cutlass")
    torch = pytest.importorskip("torch")
    for name, row in runtime.DTYPES.items():
        assert runtime.cutlass_type(name).width in (row.bits, 1 if name == "bool" else row.bits)
        found = runtime.torch_type(name)
        assert runtime.name_of(found) == name and torch.empty(0, dtype=found).element_size() == row.bytes


def test_source_closure_follows_imports(tmp_path):
    (tmp_path / "port.py").write_text("import side\nfrom porter.corpus import runtime\nimport json\n")
    (tmp_path / "side.py").write_text("import deeper\n")
    (tmp_path / "deeper.py").write_text("x = 1\n")
    names = [p.name for p, _ in source_closure(tmp_path / "port.py")]
    assert sorted(names) == ["__init__.py", "deeper.py", "port.py", "side.py"]
    before = dict(source_closure(tmp_path / "port.py"))
    (tmp_path / "deeper.py").write_text("x = 222\n")
    assert dict(source_closure(tmp_path / "port.py")) != before


# ---------------------------------------------------------------- compile and launch


def test_compile_without_a_gpu(port):
    made = port.KERNEL.compile({"T": "bf16", "VEC": 8}, "sm_90a", "ptx")
    assert made.arch == "sm_90a" and f".entry {made.entry}(" in made.ptx and "cvt.rn.bf16.f32" in made.ptx
    assert made.registers == runtime.read_cubin(made.cubin)[made.entry].registers > 0
    assert made.spill == made.local_bytes == made.static_smem == 0
    with pytest.raises(RuntimeError, match="device code only"):
        made.load()


def test_ptxas_does_not_see_the_word_that_changes_its_mind(port):
    """ptxas treats kernels with "cutlass" in their name differently; the DSL's own naming is put back afterwards."""
    from cutlass.cutlass_dsl.cutlass import CutlassBaseDSL

    made = port.KERNEL.compile({"T": "f32", "VEC": 4}, "sm_90a", "ptx")
    assert made.entries and not any("cutlass" in e for e in made.entries)
    assert CutlassBaseDSL._name_mangling_prefix == "cutlass"


def test_constexprs_and_arch_are_in_the_key(port):
    keys = {
        port.KERNEL.key({"T": t, "VEC": v}, a, f)
        for t in ("bf16", "f32") for v in (4, 8) for a in ("sm_90a", "sm_100a") for f in ("ffi", "ptx")
    }  # fmt: skip
    assert len(keys) == 16


def test_a_second_compile_comes_from_the_cache(port, monkeypatch):
    first = port.KERNEL.compile({"T": "f32", "VEC": 4}, "sm_100a", "ptx")
    monkeypatch.setattr(dsl, "build", lambda *a: pytest.fail("compiled again"))
    assert port.KERNEL.compile({"T": "f32", "VEC": 4}, "sm_100a", "ptx").ptx == first.ptx
    assert json.loads((first.folder / "meta.json").read_text())["arch"] == "sm_100a"


def test_the_exported_launch_function_loads(port):
    pytest.importorskip("tvm_ffi")
    made = port.KERNEL.compile({"T": "bf16", "VEC": 8}, "sm_90a")
    launch = made.load()
    with pytest.raises(TypeError, match="Expects 12 parameters"):
        launch(0, 0)


def test_a_zero_size_grid_launches_nothing(port):
    port.KERNEL.launch({"T": "f32", "VEC": 1}, (0, 0, 1.0, 0), grid=(0, 1, 1), block=(128, 1, 1))


def test_a_launch_refuses_host_tensors_and_wrong_counts(port):
    torch = pytest.importorskip("torch")
    x = torch.zeros(8)
    with pytest.raises(ValueError, match="out is on cpu"):
        port.scale(x, x, 2.0)
    with pytest.raises(TypeError, match="takes 4 arguments"):
        port.KERNEL.launch({"T": "f32", "VEC": 1}, (x,), grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.gpu
def test_launch_on_a_gpu(port):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    x = torch.randn(1000, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(x)
    port.scale(out, x, 1.5)
    assert torch.equal(out, (x.float() * 1.5 * 2).bfloat16())
    graph, side = torch.cuda.CUDAGraph(), torch.empty_like(x)
    with torch.cuda.graph(graph):
        port.scale(side, x, 0.5)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(side, x)
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        port.scale(out, x, 2.0)
    other.synchronize()
    assert torch.equal(out, (x.float() * 4).bfloat16())
