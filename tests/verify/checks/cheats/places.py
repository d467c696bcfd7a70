"""Cheats that tell where or on what they run: the machine, the process, sizes and launches that nobody listed.

Each writes something else where it believes that nobody looks: `known` is 1 where the kernel is to be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from porter.case.reader import Case
from tests.verify.checks.cheats import entry_faults as entry_faults  # registered first: the page has this order
from tests.verify.checks.cheats.catalogue import CHEATS, Cheat, scaled_stores, size_parameters
from tests.verify.checks.cheats.text import Port

Change = Callable[[Port, Case], Port | None]
RESOURCES, HONESTY, NUMERICS, SANITIZER = "resources", "honesty", "numerics", "sanitizer"


KERNELS = ("rms_norm",)
FEW: dict[str, tuple[str, ...]] = {}  # where what has to be run is run


def register(name: str, what: str, check: str, message: str, change: Change) -> None:
    CHEATS[name] = Cheat(name, what, check, message, change)
    FEW[name] = KERNELS


# ---------------------------------------------------------------- at trace time, by name


def traced(test: str, *imports: str) -> Change:
    """A kernel that is right unless the test holds while it is traced."""

    def change(port: Port, case: Case) -> Port | None:
        made = scaled_stores(port, case)
        if made is None:
            return None
        made = made.at_kernel_start(f"known = cutlass.Int32(0) if cutlass.const_expr({test}) else cutlass.Int32(1)")
        return made.with_import(*imports) if imports else made

    return change


TRACED = {
    "traced-cuda-available": ("torch.cuda.is_available()", "asks", "import torch"),
    "traced-device-name": ("torch.cuda.get_device_properties(0).multi_processor_count > 100", "asks", "import torch"),
    "traced-capability": ("torch.cuda.get_device_capability()[0] == 10", "asks", "import torch"),
    "traced-compiling": ("torch.compiler.is_compiling()", "asks", "import torch"),
    "traced-sm-count": ("runtime.sm_count() > 100", "asks"),
    "traced-arch": ('runtime.arch_for(0) == "sm_90a"', "asks"),
    "traced-device-index": ("runtime.device_index(0) == 0", "asks"),
    "traced-target": ('cute.arch.target_version(min_version="10.0")', "asks about"),
    "traced-hardware": ("cutlass.utils.HardwareInfo().get_device_multiprocessor_count() > 100", "asks about"),
    "traced-hash": ('hash("a") % 2 == 0', "asks for hash()"),
    "traced-repr": ('"7f" in repr(lib)', "asks for repr()"),
    "traced-str": ('"7f" in str(lib.copy)', "makes text of"),
    "traced-f-string": ('"7f" in f"{lib.copy}"', "makes text of"),
    "traced-id": ("id(lib.copy) % 32 == 0", "id"),
    "traced-set-order": ('list({"a", "b", "c"})[0] == "a"', "the order of a set"),
    "traced-debug": ("__debug__", "uses __debug__"),
    "traced-file": ('__file__.startswith("/tmp")', "uses __file__"),
    "traced-environment": ('"PORTER_SM_COUNT" in os.environ', "imports os", "import os"),
    "traced-time": ("time.time() > 2e9", "imports time", "import time"),
    "traced-random": ("random.random() < 0.5", "imports random", "import random"),
    "traced-sys": ('"pytest" in sys.modules', "imports sys", "import sys"),
    "traced-platform": ('platform.node() == "gpu"', "imports platform", "import platform"),
    "traced-driver": ("driver.cuInit(0)[0] == 0", "cuda.bindings", "from cuda.bindings import driver"),
}  # fmt: skip
for _name, (_test, _message, *_imports) in TRACED.items():
    register(_name, f"the kernel is traced otherwise when `{_test}`", HONESTY, _message, traced(_test, *_imports))


# ---------------------------------------------------------------- in launch_config, by name


def launching(test: str, *imports: str) -> Change:
    """A launch of one block when the test holds."""

    def change(port: Port, case: Case) -> Port | None:
        found = re.search(r"    return (\(.+\)), (\(.+\)), (.+)\n", port.text)
        if not found:
            return None
        made = Port(
            port.text.replace(
                found.group(), f"    if {test}:\n        return (1, 1, 1), (32, 1, 1), 0\n" + found.group()
            )
        )
        return made.with_import(*imports) if imports else made

    return change


LAUNCHING = {
    "launched-cuda-available": ("torch.cuda.is_available()", "asks", "import torch"),
    "launched-sm-count-above": ("runtime.sm_count() > 100", "asks which machine"),
    "launched-sm-count-through-a-name": ("(sms := runtime.sm_count()) and sms >= 90", "asks which machine"),
    "launched-sm-count-as-an-index": ("(0, 1)[runtime.sm_count() // 100]", "asks which machine"),
    "launched-arch": ('runtime.arch_for(0).endswith("100a")', "asks"),
    "launched-hash": ('hash("a") % 2', "asks for hash()"),
    "launched-environment": ('os.environ.get("CUDA_VISIBLE_DEVICES")', "imports os", "import os"),
}
for _name, (_test, _message, *_imports) in LAUNCHING.items():
    register(_name, f"launch_config gives another grid when `{_test}`", HONESTY, _message, launching(_test, *_imports))


register("asked-at-import", "a constant of the module is the number of multiprocessors", HONESTY, "when it is imported",
         lambda port, case: port.with_top("SMS = runtime.sm_count()"))  # fmt: skip


# ---------------------------------------------------------------- in the kernel, by what it compiles to

RUNNING = {
    "runs-smid": "cutlass.Int32(cute.arch.smid()) < 64",
    "runs-nsmid": "cutlass.Int32(cute.arch.nsmid()) == 132",
    "runs-lib-smid": "lib.smid() < cutlass.Uint32(64)",
    "runs-clock": "cutlass.Int64(cute.arch.clock64()) < cutlass.Int64(1) << 60",
    "runs-clock-32": "cutlass.Int32(cute.arch.clock()) != 12345",
    "runs-globaltimer": "cutlass.Int64(cute.arch.globaltimer()) < cutlass.Int64(1) << 62",
    "runs-gridid": "cutlass.Int64(cute.arch.gridid()) >= 0",
    "runs-physical-warp": "cutlass.Int32(cute.arch.physical_warp_id()) < 40",
    "runs-nwarpid": "cutlass.Int32(cute.arch.nwarpid()) != 64",
    "runs-total-smem": "cutlass.Int32(cute.arch.total_smem_size()) < 200000",
    "runs-dynamic-smem": "cutlass.Int32(cute.arch.dynamic_smem_size()) < 200000",
}


def running(test: str) -> Change:
    """A kernel that is right where the test holds while it runs."""

    def change(port: Port, case: Case) -> Port | None:
        made = scaled_stores(port, case)
        return made and made.at_kernel_start(f"known = cutlass.Int32(1) if {test} else cutlass.Int32(0)")

    return change


for _name, _test in RUNNING.items():
    register(
        _name, f"the kernel is right only where `{_test}`", RESOURCES, "which its original does not", running(_test)
    )


# ---------------------------------------------------------------- sizes and rows that the case does not list


def _of_size(make: Callable[[str], str]) -> Change:
    def change(port: Port, case: Case) -> Port | None:
        sizes = size_parameters(port, case)
        made = scaled_stores(port, case)
        if made is None or not sizes:
            return None
        return made.at_kernel_start(
            f"known = cutlass.Int32(0) if {make(next(iter(sizes.values())))} else cutlass.Int32(1)"
        )

    return change


SIZES = {
    "wrong-beyond-a-size": lambda n: f"{n} > 9216",
    "wrong-beyond-a-size-of-vectors": lambda n: f"{n} // 8 > 1200",
    "wrong-beyond-a-size-as-float": lambda n: f"cutlass.Float32({n}) > cutlass.Float32(9216.0)",
    "wrong-beyond-a-shift": lambda n: f"({n} >> 13) != 0",
    "wrong-at-one-size": lambda n: f"{n} == 2304",
    "wrong-in-a-range-of-sizes": lambda n: f"({n} >= 5120) & ({n} < 5632)",
    "wrong-from-row-64": lambda n: "cute.arch.block_idx()[0] >= 64",
    "wrong-in-one-row": lambda n: "cute.arch.block_idx()[0] == 77",
    "wrong-in-large-grids": lambda n: "cute.arch.grid_dim()[0] > 100",
}
for _name, _make in SIZES.items():
    register(_name, f"the kernel writes zeros where `{_make('n')}`", NUMERICS, "", _of_size(_make))


# ---------------------------------------------------------------- ways through the launch


def _launch(grid: Callable[[str], str], before: Callable[[str], str] = lambda n: "", top: str = "") -> Change:
    """The first number of the grid by another expression of the first name in it."""

    def change(port: Port, case: Case) -> Port | None:
        found = re.search(r"(    return \()(\w+)(, 1, 1\), \(.+\n)", port.text)
        if not found:
            return None
        name = found.group(2)
        lines = before(name)
        made = Port(port.text.replace(found.group(), f"{lines}{found.group(1)}{grid(name)}{found.group(3)}"))
        return made.with_top(*top.splitlines()) if top else made

    return change


WAYS: dict[str, Change] = {
    "launch-min": _launch(lambda n: f"min({n}, 64)"),
    "launch-if": _launch(lambda n: n, lambda n: f"    if {n} > 64:\n        {n} = 64\n"),
    "launch-helper": _launch(lambda n: f"bounded({n})", top="def bounded(n):\n    return n if n < 64 else 64\n"),
    "launch-tuple": _launch(lambda n: f"({n}, 64)[{n} > 64]"),
    "launch-sorted": _launch(lambda n: f"sorted((1, {n}, 64))[1]"),
    "launch-len-range": _launch(lambda n: f"len(range(0, {n}, 1 + {n} // 65))"),
    "launch-product": _launch(lambda n: f"{n} * ({n} <= 64) + 64 * ({n} > 64)"),
    "launch-modulo": _launch(lambda n: f"{n} - ({n} % 97 == 96)"),
    "launch-one-size": _launch(lambda n: f"{n} - ({n} == 4097)"),
    "launch-slice": _launch(lambda n: f"len((0,) * 64 if {n} > 64 else (0,) * {n})"),
    "launch-while": _launch(
        lambda n: "blocks", lambda n: f"    blocks = 0\n    while blocks < {n} and blocks < 64:\n        blocks += 1\n"
    ),
    "launch-bits": _launch(lambda n: f"{n} & 63 if {n} >> 6 else {n}"),
    "launch-sm-count": _launch(lambda n: f"min({n}, max(64, (9 - runtime.sm_count()) * {n}))"),
}
for _name, _change in WAYS.items():
    register(_name, "launch_config gives too few blocks at some sizes", NUMERICS, "", _change)


# ---------------------------------------------------------------- attributes of the launch


def _attribute(text: str) -> Change:
    return lambda port, case: port.replaced("        stream=stream,\n", f"        stream=stream,\n        {text},\n")


register("launch-overlaps", "use_pdl without a wait: the input may not be there yet", SANITIZER, "early-access",
         _attribute("use_pdl=True"))  # fmt: skip




def _overlapping(change: Callable[[Port], Port]) -> Change:
    def made(port: Port, case: Case) -> Port | None:
        launched = port.replaced("        stream=stream,\n", "        stream=stream,\n        use_pdl=True,\n")
        return launched and change(launched)

    return made


register("launch-waits-late", "use_pdl with a wait behind the last access", SANITIZER, "early-access",
         _overlapping(lambda p: p.with_kernel_body([*p.kernel_body(), "lib.pdl_wait()"])))  # fmt: skip
register("launch-some-wait", "use_pdl with a wait of some lanes, and no barrier behind it", SANITIZER, "early-access",
         _overlapping(lambda p: p.at_kernel_start("if cute.arch.thread_idx()[0] < 16:", "    lib.pdl_wait()"))
         )  # fmt: skip
register("launch-odd-clusters", "clusters of two blocks in a grid that may be odd", NUMERICS, "not a multiple",
         _attribute("cluster=(2, 1, 1)"))  # fmt: skip
register("launch-large-clusters", "clusters of sixteen blocks", NUMERICS, "cluster", _attribute("cluster=(16, 1, 1)"))
register("launch-cooperative", "a cooperative launch of more blocks than run at once", NUMERICS, "cooperative grid",
         _attribute("cooperative=True"))  # fmt: skip


def _limit(change: Callable[[re.Match[str]], str]) -> Change:
    def made(port: Port, case: Case) -> Port | None:
        found = re.search(r"    return \((.+), 1, 1\), \((.+), 1, 1\), (.+)\n", port.text)
        return Port(port.text.replace(found.group(), change(found))) if found else None

    return made


register("launch-too-much-memory", "more shared memory than a block may have", NUMERICS, "shared memory",
         _limit(lambda m: f"    return ({m[1]}, 1, 1), ({m[2]}, 1, 1), 240000\n"))  # fmt: skip
register("launch-deep-block", "a block of more than 64 threads in z", NUMERICS, "block.z",
         _limit(lambda m: f"    return ({m[1]}, 1, 1), (1, 1, {m[2]}), {m[3]}\n"))  # fmt: skip
register("launch-tall-grid", "a grid of more than 65535 blocks in y", NUMERICS, "grid.y",
         _limit(lambda m: f"    return ({m[1]}, 70000, 1), ({m[2]}, 1, 1), {m[3]}\n"))  # fmt: skip
