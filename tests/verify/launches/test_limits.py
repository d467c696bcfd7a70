"""What no GPU accepts, what a port's own `.launch(...)` says, and launches that are refused before anything is run."""

from __future__ import annotations

import pytest

from porter.case.model import LaunchShape
from porter.case.reader import parse_case
from porter.model import PorterError
from porter.verify.launches.attributes import attributes_of
from porter.verify.launches.constants import compared_constants, own_constants
from porter.verify.launches.limits import KernelResources, broken_limit, resident_blocks
from porter.verify.launches.own import PortLaunches
from porter.verify.launches.trials import choose_trials

SMALL = LaunchShape((4, 1, 1), (64, 1, 1))
BROKEN = {
    "grid.x": LaunchShape((1 << 31, 1, 1), (64, 1, 1)),
    "grid.y": LaunchShape((1, 65536, 1), (64, 1, 1)),
    "grid.z": LaunchShape((1, 1, 70000), (64, 1, 1)),
    "block.x": LaunchShape((1, 1, 1), (2048, 1, 1)),
    "block.z": LaunchShape((1, 1, 1), (1, 1, 65)),
    "1056 threads": LaunchShape((1, 1, 1), (33, 32, 1)),
    "shared memory": LaunchShape((1, 1, 1), (64, 1, 1), 232449),
    "cluster of 16": LaunchShape((16, 1, 1), (64, 1, 1), cluster=(16, 1, 1)),
    "not a multiple": LaunchShape((3, 1, 1), (64, 1, 1), cluster=(2, 1, 1)),
    "cooperative grid": LaunchShape((5121, 1, 1), (64, 1, 1), cooperative=True),
}


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", BROKEN)
def test_each_limit_is_named(name, arch):
    assert name in broken_limit(BROKEN[name], KernelResources(), arch)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_the_largest_that_is_accepted(arch):
    most = LaunchShape(((1 << 31) - 1, 65535, 65535), (16, 1, 64), 232448)
    assert broken_limit(most, KernelResources(), arch) == ""
    blocks = resident_blocks(SMALL, KernelResources(32), arch)
    assert blocks == 32
    sms = {"sm_90a": 144, "sm_100a": 160}[arch]
    together = LaunchShape((blocks * sms, 1, 1), (64, 1, 1), cooperative=True)
    assert broken_limit(together, KernelResources(32), arch) == ""
    assert "at most 256" in broken_limit(together, KernelResources(32), arch, sm_count=8)


def test_registers_and_static_memory_count():
    wide = LaunchShape((1, 1, 1), (1024, 1, 1))
    assert "128 registers" in broken_limit(wide, KernelResources(128), "sm_90a")
    assert broken_limit(wide, KernelResources(64), "sm_90a") == ""
    assert resident_blocks(wide, KernelResources(64), "sm_90a") == 1
    assert "static shared" in broken_limit(SMALL, KernelResources(32, 50000), "sm_90a")
    assert "a launch in clusters" in broken_limit(
        LaunchShape((2, 1, 1), (32, 1, 1), cluster=(2, 1, 1)), KernelResources(), "sm_80"
    )
    assert "at most 101376" in broken_limit(LaunchShape((1, 1, 1), (32, 1, 1), 120000), KernelResources(), "sm_120a")


PORT = """
import cutlass
import cutlass.cute as cute
from porter.corpus import lib, runtime

SIZE = 2

@cute.jit
def _launch_k(out, grid_x, grid_y, grid_z, block_x, block_y, block_z, smem_bytes, VEC, stream):
    k(out, VEC).launch(grid=(grid_x, grid_y, grid_z), block=(block_x, block_y, block_z), stream=stream{more})
"""


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ("", (False, (1, 1, 1), False, None)),
        (", cooperative=True", (True, (1, 1, 1), False, None)),
        (", cluster=(SIZE, 1, 1)", (False, (2, 1, 1), False, None)),
        (", cluster=[VEC, 1, 1], use_pdl=VEC > 4", (False, (8, 1, 1), True, None)),
        (", smem=smem_bytes", (False, (1, 1, 1), False, None)),
        (", smem=4096", (False, (1, 1, 1), False, 4096)),
    ],
)
def test_attributes_are_those_of_the_port(more, shown):
    found = attributes_of(PORT.replace("{more}", more), {"VEC": 8})
    assert (found.cooperative, found.cluster, found.use_pdl, found.smem) == shown


@pytest.mark.parametrize(
    "more", [", cooperative=ask()", ", cluster=(grid_x, 1, 1)", ", use_pdl=bool(stream)", ", cluster=0"]
)
def test_attributes_that_are_not_known_are_refused(more):
    with pytest.raises(PorterError, match=r"not known before it runs|positive"):
        attributes_of(PORT.replace("{more}", more), {"VEC": 8})


def test_dynamic_memory_that_the_launch_does_not_ask_for_is_none():
    assert attributes_of(PORT.replace("{more}", "") + "x = lib.dyn_shared(Float32)\n", {}).smem == 0


CASE = """schema = 1
kernel = "k"
[sizes]
pairs = [3, 70000]
[[buffers]]
name = "out"
dtype = "f32"
shape = ["pairs"]
role = "out"
[launch]
grid = [{grid}]
block = [32, 1, 1]
{more}
"""


@pytest.mark.parametrize(
    ("grid", "more", "said"),
    [
        ('1, 1, "pairs"', "", "grid.z"),
        ('1, "pairs", 1', "", "grid.y"),
        ('"pairs", 1, 1', "cooperative = true", "cooperative grid"),
        ('"pairs + 1", 1, 1', "cluster = [3, 1, 1]", "not a multiple"),
        ('"pairs", 1, 1', "smem = 250000", "shared memory"),
    ],
)
def test_a_case_that_no_gpu_launches_is_the_cases_fault(tmp_path, grid, more, said):
    case = parse_case(CASE.format(grid=grid, more=more), tmp_path / "k.case.toml")
    port = tmp_path / "k.py"
    port.write_text(PORT.replace("{more}", ""))
    (instance,) = case.instances
    own = PortLaunches(
        port, port.read_text(), case, instance, {}, 8, {"sm_90a": KernelResources(32)}, {"sm_90a": KernelResources(32)}
    )
    trials = choose_trials(case, instance, {}, 1)
    pairs = [(case.launch_at(t.point, {}, 8),) * 2 for t in trials]
    own_ask = type(own)._ask
    try:
        type(own)._ask = lambda self, points: [self._case_launch(p, 8) for p in points]
        plan = own.plan(trials, pairs, [], 1)
    finally:
        type(own)._ask = own_ask
    assert [d.code for d in plan.undecided] == ["PRT846"] and said in plan.undecided[0].message
    assert not plan.against and all(max(t.point.sizes.values()) == 3 for t in plan.trials)


def test_constants_of_comparisons_count_and_others_do_not():
    text = """
    setp.gt.s32 %p1, %r1, 9216;
    setp.gt.f32 %p2, %f1, 0f45800000;
    shr.s32 %r3, %r1, 12;
    setp.ne.s32 %p3, %r3, 0;
    add.s32 %r4, %r1, -5120;
    setp.lt.u32 %p4, %r4, 512;
    min.s32 %r5, %r1, 777;
    add.s64 %rd1, %rd2, 4096000;
    and.b32 %r9, %r1, 31;
    """
    assert compared_constants(text) == ({9216, 4096, 5120, 512, 777}, {4096})
    assert own_constants("setp.gt.s32 %p1, %r1, 777;", text)[0] == [512, 4096, 5120, 9216]


def test_of_a_run_of_numbers_the_ends_are_tried():
    text = "".join(f"setp.eq.s32 %p1, %r1, {n};\n" for n in (3, 4, *range(17, 60), 100))
    assert own_constants("", text) == ([3, 4, 100], [17, 59])


def test_neighbours_of_the_original_s_numbers_come_behind_the_others():
    here, there = (f"setp.lt.s32 %p1, %r1, {n};\n" for n in (127, 128))
    assert own_constants(there, here + "setp.lt.s32 %p1, %r2, 600;\n") == ([600], [127, 128])
