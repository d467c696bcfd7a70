"""bench/styles.py: which ports are timed, what is measured of a pair, and when the gates hold. No GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bench import ports_vs_originals, styles
from porter.case.reader import load_case
from porter.verify.backends.timing import Rotation
from tools.gpu.manifest import Bundle, InstanceFacts, KernelFacts, Launch

REFERENCE = Path(__file__).parents[2] / "reference_kernels"


def facts(name: str, port: str, case: str = "c") -> KernelFacts:
    digests = {f"{name}.py": port, f"{name}.case.toml": case, f"{name}.cu": "s", f"{name}.cubin": "b"}
    files = (f"ports/{name}.py", f"cases/{name}.case.toml", f"cubins/{name}.cubin", f"cubins/{name}.ptx")
    return KernelFacts(name, name, name, {"out": "out"}, *files, [], "", digests, [])


def bundle(style: str, *kernels: KernelFacts) -> Bundle:
    return Bundle(Path(style), "", "abc", "sm_90a", {}, 0, "", list(kernels), style)


def test_only_ports_that_differ_are_timed() -> None:
    pointer = bundle("pointer", facts("a", "1"), facts("b", "1"))
    pairs, same = styles.paired(pointer, bundle("tensor", facts("a", "2"), facts("b", "1")))
    assert [(p.sha256["a.py"], t.sha256["a.py"]) for p, t in pairs] == [("1", "2")]
    assert same == ["b"]


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (bundle("pointer", facts("a", "1")), bundle("pointer", facts("a", "2")), "not in tensor style"),
        (bundle("tensor", facts("a", "1")), bundle("tensor", facts("a", "2")), "not in pointer style"),
        (bundle("pointer", facts("a", "1")), bundle("tensor", facts("b", "1")), "hold other kernels"),
        (bundle("pointer", facts("a", "1")), bundle("tensor", facts("a", "2", case="d")), "a: its source, case"),
    ],
)
def test_bundles_that_do_not_belong_together_are_refused(one: Bundle, other: Bundle, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        styles.paired(one, other)


def row(ratio: float, counts: bool = True, equal: bool | None = True, settled: bool = True) -> dict[str, Any]:
    cold = {"ratio": ratio, "counts": counts, "settled": settled}
    return {"sizes": {"n": 1}, "outputs_equal": equal, "graph_cold": cold}


@pytest.mark.parametrize(
    ("kernels", "passes"),
    [
        ({"a": [row(1.0), row(1.004)]}, True),
        ({"a": [row(1.01), row(1.01)]}, False),  # the mean
        ({"a": [row(0.9), row(1.04)]}, False),  # one shape
        ({"a": [row(0.9), row(1.04, counts=False)]}, True),  # within what the pointer form differs from itself by
        ({"a": [row(1.0, equal=False)]}, False),
        ({"a": [row(1.0, equal=None)]}, True),
    ],
)
def test_gates(kernels: dict[str, list[dict[str, Any]]], passes: bool) -> None:
    assert styles.summary(kernels)["passes"] is passes


def test_the_worst_is_named() -> None:
    found = styles.summary({"a": [row(1.01)], "b": [row(0.98), row(1.2, settled=False)]})
    assert found["worst"] == {"kernel": "b", "sizes": {"n": 1}, "ratio": 1.2}
    assert found["over"] == ["b"] and found["unsettled"] == 1


@dataclass
class Graph:
    """Calls that are made when they are captured; a replay takes 2 us over pointers, 1 us over tensors."""

    calls: list[Any]

    def replay_us(self, before: Any) -> float:
        return 2.0 if self.calls[0].func.__self__.style == "pointer" else 1.0


@dataclass
class Side:
    """A subject whose port writes `value` to every byte of the output."""

    style: str
    value: int
    case: Any
    instance: InstanceFacts
    launch: Launch
    inputs: list[Any]

    def run_port(self, buffers: Any) -> None:
        self.inputs.append(buffers["input"].allocation.clone())
        buffers["out"].allocation.fill_(self.value)

    def counted_bytes(self, host: Any) -> int:
        return 1


@pytest.mark.parametrize(("values", "equal"), [((7, 7), True), ((7, 8), False)])
def test_both_ports_run_on_the_same_inputs(
    monkeypatch: pytest.MonkeyPatch, values: tuple[int, int], equal: bool
) -> None:
    case = load_case(REFERENCE / "norm/rms_norm.case.toml")
    template = {"scalar_t": "bf16", "VEC": 8}
    point = next(p for p in case.instance_points(case.instances[0], template) if p.sizes["tokens"])
    shapes, strides = ({k: list(v) for k, v in d.items()} for d in (point.shapes, point.strides))
    launch = Launch(point.sizes, point.scalars, shapes, strides, [], "normal", [], "function", [1] * 3, [32, 1, 1], 0)
    instance = InstanceFacts(["__nv_bfloat16", "8"], template, "", [], [], [], False, [])
    sides = {s: Side(s, v, replace(case), instance, launch, []) for s, v in zip(styles.STYLES, values, strict=True)}
    monkeypatch.setattr(ports_vs_originals, "DEVICE", torch.device("cpu"))
    monkeypatch.setattr(styles, "TorchGraph", Graph)
    monkeypatch.setattr(styles, "rotation_for", lambda *_: Rotation(2, 4))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    sweep: Any = type("Sweep", (), {"l2": 1 << 20, "__call__": lambda self: None})()
    found = styles.bench(sides, sweep, 1)  # type: ignore[arg-type]
    assert found["outputs_equal"] is equal
    assert found["graph_cold"]["ratio"] == 0.5 and found["graph_cold"]["settled"]
    (one,), (two,) = sides["pointer"].inputs, sides["tensor"].inputs
    assert torch.equal(one, two)
