"""Counts on a small module that holds one of each, and ptxas where there is one."""

import pytest

from porter.corpus.runtime import read_cubin
from porter.verify.checks.ptx_stats import function_texts, ptx_stats
from porter.verify.compile.ptxas import cubin_of, find_ptxas

PTX = """
.version 9.0
.target sm_90
.address_size 64
.shared .align 4 .b8 used[64];
.shared .align 4 .b8 unused[4096];
.extern .shared .align 16 .b8 dynamic[];
.func helper(.param .b32 x);  // a declaration { with a brace in its comment
.visible .entry other() { ret; }
.visible .entry k(.param .u64 p)
.maxntid 128, 1, 1
{
	.reg .pred %p<2>; .reg .b32 %r<20>; .reg .b64 %rd<4>;
	.local .align 16 .b8 __local_depot0[96];
	.shared .align 4 .f32 tile[33][32];
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd2, %rd1;
	ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];
	ld.global.L1::no_allocate.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd2];
	ld.global.b32 %r9, [%rd2+32];
	ld.v2.b64 {%rd1, %rd3}, [%rd2];
	@%p1 st.global.v4.b32 [%rd2], {%r1, %r2, %r3, %r4};
	@!%p1 st.global.v2.b64 [%rd2], {%rd1, %rd3};
	st.shared.b32 [used], %r1; ld.shared::cta.v4.b32 {%r1, %r2, %r3, %r4}, [tile];
	st.local.b32 [__local_depot0], %r1;
	bar.sync 0;
	barrier.sync 1, 64;
	bar.warp.sync -1;
	barrier.cluster.arrive;
	shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;
	vote.sync.ballot.b32 %r1, %p1, -1;
	atom.global.add.u32 %r1, [%rd2], 1;
	red.shared.add.u32 [used], 1;
$L1:
	ret;
}
"""


def test_counts():
    s = ptx_stats(PTX, "k")
    assert (s.loads, s.loads_128, s.loads_256, s.generic) == (4, 2, 1, 1)
    assert (s.stores, s.stores_128, s.stores_256) == (2, 2, 0)
    assert (s.shared_accesses, s.shared_bytes) == (2, 64 + 33 * 32 * 4)
    assert (s.local_accesses, s.local_bytes) == (1, 96)
    assert (s.barriers, s.warp_barriers, s.cluster_barriers) == (2, 1, 1)
    assert (s.shuffles, s.votes, s.atomics, s.async_copies, s.mma) == (1, 1, 2, 0, 0)
    assert s.instructions == 20


def test_the_entry_must_be_named_where_there_are_several():
    assert set(function_texts(PTX)) == {"k", "other"}
    with pytest.raises(KeyError, match="2 kernels"):
        ptx_stats(PTX)
    assert ptx_stats(PTX, "other").instructions == 1


def test_ptxas_reads_it(tmp_path, monkeypatch):
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n ret;\n}\n"
    made = cubin_of(ptx, "sm_90")
    assert made is not None and list(read_cubin(made)) == ["k"]
    assert cubin_of(ptx.replace("ret", "rett"), "sm_90") is None
    assert cubin_of(ptx.replace("8.0", "99.0"), "sm_90") is None
