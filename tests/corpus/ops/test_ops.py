"""Ops of the corpus as torch sees them: schemas, fake implementations, the CPU, torch.compile, the kill switch."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from porter import corpus
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime import ops


def test_the_custom_op_runs_on_the_cpu_through_the_fallback():
    x, w = torch.randn(4, 64), torch.randn(64)
    out, want = torch.empty(4, 64), torch.nn.functional.rms_norm(x, (64,), w, 1e-6)
    torch.ops.porter.rms_norm(out, x, w, 1e-6)
    torch.testing.assert_close(out, want)
    out.zero_()
    corpus.rms_norm(out, x, w, epsilon=1e-6)
    torch.testing.assert_close(out, want)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_opcheck(name):
    """Schema, fake implementation and aliasing hold on the CPU, for every op that has a workload."""
    arguments = WORKLOADS[name].make(3, torch.bfloat16, "cpu", **WORKLOADS[name].dims[0])
    checks = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    if any(torch.is_tensor(a) and a.dtype == torch.float8_e4m3fn for a in arguments):
        checks = checks[1:3]  # torch cannot compare fp8 tensors on the CPU
    torch.library.opcheck(getattr(torch.ops.porter, name).default, arguments, test_utils=checks)


def test_torch_compile_has_no_graph_break():
    def layer(x, w):
        out = torch.empty_like(x)
        corpus.rms_norm(out, x, w, 1e-6)
        return out * 2

    x, w = torch.randn(4, 64), torch.randn(64)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, w), 2 * torch.nn.functional.rms_norm(x, (64,), w, 1e-6))


def test_the_kill_switch(monkeypatch):
    assert ops.enabled("rms_norm")
    monkeypatch.setenv("PORTER_DISABLE", "qk_norm, rms_norm")
    assert not ops.enabled("rms_norm") and ops.enabled("silu_and_mul")
    monkeypatch.setenv("PORTER_DISABLE", "all")
    assert not ops.enabled("silu_and_mul")


@pytest.mark.parametrize("name", sorted(__import__("porter.corpus.ops").corpus.ops.__all__))
def test_every_op_is_registered_and_documented(name):
    assert ops.OPS[name].schema.startswith(f"{name}(") and getattr(corpus, name).__doc__
    assert hasattr(torch.ops.porter, name) and name in WORKLOADS


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_every_op_is_one_node_of_a_compiled_graph(name):
    """`porter.corpus.NAME` becomes the custom op under torch.compile and torch.export, without a graph break."""
    torch._dynamo.reset()  # all cases share one piece of code
    arguments = WORKLOADS[name].make(3, torch.bfloat16, "cpu", **WORKLOADS[name].dims[0])
    tensors = [a for a in arguments if torch.is_tensor(a)]
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return graph

    class Layer(torch.nn.Module):
        def forward(self, *given):
            left = list(given)
            getattr(corpus, name)(*(left.pop(0) if torch.is_tensor(a) else a for a in arguments))
            return given[0]

    torch.compile(Layer(), fullgraph=True, backend=keep)(*tensors)
    graphs.append(torch.export.export(Layer(), tuple(tensors), strict=False).graph_module)
    for graph in graphs:
        called = [node.target for node in graph.graph.nodes if node.op == "call_function"]
        assert sum(f"porter.{name}" in str(target) for target in called) == 1, called
