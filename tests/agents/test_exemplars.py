"""What is looked up for a kernel is about what the kernel does."""

from __future__ import annotations

import re

import pytest

from porter.agents.exemplars import constructs_of, exemplars, kernel_query, ranker, words
from porter.agents.prompts import first_message
from porter.agents.runs.session import translation
from porter.agents.runs.verifier import subject_of
from porter.config import PortConfig
from tests.agents.runs.test_eval import TASKS

pytest.importorskip("bm25s", reason="needs the extra `agent`")

# What must be among the exemplars that are shown with a task, without being asked for.
SHOWN = {
    "case_inside_if": ["pattern.switch_chain"],
    "function_pointer": ["pattern.reference_parameter"],
    "goto_loop": ["pattern.loop_exit"],
    "goto_out": ["pattern.loop_exit"],
    "packed_add_u8": [],
    "packed_average_u8": [],
    "packed_greater_u8": [],
    "packed_max_s16": [],
    "packed_sub_u16": [],
    "recursive_gcd": ["lib.integers.c_mod"],
    "recursive_power": [],  # nothing in the corpus is about recursion, here or in the packed ones
    "reference_result": ["pattern.reference_local", "pattern.reference_parameter"],
    "bias_uncoalesced": ["lib.integers.c_mod"],
    "needless_shared": ["pattern.shared_in_function"],
    "power_recomputed": ["pattern.strided_loop"],
    "row_max_reread": ["pattern.strided_loop"],
    "row_sum_tree": ["pattern.cub_block_reduce"],
    "transpose_conflicts": ["pattern.shared_in_function"],
}


def test_every_task_has_its_row():
    assert SHOWN.keys() == TASKS.keys()


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_with_a_task(name):
    subject = subject_of(translation(TASKS[name].source, PortConfig(arch=("sm_90a",))), TASKS[name].kind == "optimise")
    text = first_message(subject, (), ["helpers"])["content"][0]["text"]
    shown = re.findall(r"^### (\S+)$", text, re.MULTILINE)
    assert set(SHOWN[name]) <= set(shown) and len(shown) <= 6, shown
    near = ranker().to_show(kernel_query(subject.cuda, [(h.cuda, h.reason) for h in subject.holes]))
    assert [e.name for e in near] == shown
    assert all(e.text.rstrip()[:3000] in text for e in near)


def test_a_cuda_name_finds_the_function_that_stands_for_it():
    """Corpus functions name their CUDA counterparts in their docstrings: `__shfl_xor_sync`."""
    asked = {
        (name, e.name)
        for e in exemplars() if e.name.startswith("lib.") for name in re.findall(r"`(__\w+)`", e.summary)
    }  # fmt: skip
    missed = [(name, e) for name, e in asked if e not in [f.name for f in ranker().search(name, 3)]]
    assert len(asked) > 30 and len(missed) <= len(asked) // 15, missed


def test_words_and_constructs():
    assert words("__vadd4(threadIdx.x, warpReduceSum) // x") == [
        "vadd4",
        "vadd",
        "warpreducesum",
        "warp",
        "reduce",
        "sum",
    ]
    assert constructs_of("for (;;) { // goto __shared__\n  /* atomicAdd( */ }") == frozenset()
    assert constructs_of("__shared__ float4 t[3]; __syncthreads(); atomicAdd(&x, a % b);") == {
        "shared memory", "barrier", "vector access", "atomic", "integer division",
    }  # fmt: skip
    host = 'extern "C" void launch(float* x) {\n  k<<<1, 32>>>(x, softmax);\n}\n'
    query = kernel_query(f"// exp\n#include <x>\n__global__ void k() {{ goto a; }}\n{host}", [("goto a;", "no goto")])
    assert query.startswith("goto a; no goto") and "softmax" not in query and "include" not in query


def test_the_order_does_not_depend_on_the_order_of_sets():
    assert [e.name for e in ranker().search("__shared__ int a; __syncthreads();", 8)] == [
        e.name for e in type(ranker())(exemplars()).search("__shared__ int a; __syncthreads();", 8)
    ]
    assert ranker().search("qqqq") == [] and ranker().search("") == []
