"""A verifier that reads its answers off marks in the text: for tests that are not about verification."""

from __future__ import annotations

from porter.agents.edit_session import StartingPort
from porter.model import Diagnostic, Hole, LineMapEntry, Status, Verdict
from porter.model.facts import CountedLaunch, PerformanceFacts
from porter.source import Span

CHECKS = ("honesty", "names", "compile", "resources", "entry", "numerics", "sanitizer", "determinism", "performance")
PORT = '''"""k, ported."""

import cutlass.cute as cute
from cutlass import Int32

from porter.corpus import lib, runtime


@cute.kernel
def k(out: cute.Pointer, n: Int32):
    i = cute.arch.thread_idx()[0]
    runtime.hole(1, "PRT110")  # goto
    out[i] = runtime.hole(2, "PRT503", Int32)


@cute.jit
def _launch_k(out: cute.Pointer, n: Int32, stream):
    k(out, n).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)
'''
HOLES = (
    Hole("PRT110", Span("k.cu", 3, 1), "goto again;", "goto has no equivalent"),
    Hole("PRT503", Span("k.cu", 4, 1), "__vadd4(a, b)", "no equivalent"),
)
CUDA = "__global__ void k() { goto again; }"
SUBJECT = StartingPort("k", CUDA, "", PORT, (LineMapEntry(12, Span("k.cu", 3, 1)),), HOLES)
FILLED = PORT.replace('runtime.hole(1, "PRT110")  # goto', "pass").replace('runtime.hole(2, "PRT503", Int32)', "n")


class StubVerifier:
    """`no_compile` and `wrong` in a text make that check fail, `overfit` fails with unseen launches only."""

    def __init__(self, fault: str = "") -> None:
        self.asked: list[str] = []
        self.says = fault

    def why_unavailable(self):
        self.asked.append("fault")
        return self.says

    def check_names(self, text):
        self.asked.append("names")
        return (
            [Diagnostic("PRT810", "`cute.nope` does not exist", help="did you mean `cute.none`?")]
            if "nope" in text
            else []
        )

    def compile(self, text):
        self.asked.append("compile")
        return [Diagnostic("PRT811", "no", Span("k.py", 12))] if "no_compile" in text or "hole(" in text else []

    def verify(self, text, line_map, effort):
        self.asked.append(f"verify {effort}")
        fails = ""
        if "nope" in text:
            fails = "names"
        elif "no_compile" in text or "hole(" in text:
            fails = "compile"
        elif "wrong" in text or (effort == "unseen" and "overfit" in text):
            fails = "numerics"
        found, failed = [], False
        for check in CHECKS:
            if check == fails:
                found.append(Verdict(check, Status.FAIL, f"{check} says no", (Diagnostic("PRT801", "differs"),)))
                failed = True
            elif check == "performance" or (failed and fails in ("names", "compile")):
                found.append(Verdict(check, Status.SKIP, "not run"))
            else:
                found.append(Verdict(check, Status.PASS, "good"))
        if "fast" in text:
            count = {"instructions": 100 - 30 * text.count("fast")}
            found[-1] = Verdict(
                "performance",
                Status.SKIP,
                "counts",
                (),
                PerformanceFacts(counts=(CountedLaunch(port=count, original={"instructions": 100}),)),
            )
        return found
