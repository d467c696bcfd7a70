"""docs/coverage.md and bench/results/coverage.json: how many kernels of public files porter ports, by repository.

`python -m tools.coverage_table SOURCES` runs `porter port --analyze --run` over FILES below SOURCES (laid out as
tools/real_sources.py says), one at a time, goes on where it was stopped, and writes both at the end; `--from-json`
rebuilds the page from the results. `--only NAME --update` runs the files with NAME in their name anew and puts their
rows in the place of those that are there.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from porter import __version__
from porter.files.atomic import write_atomic
from porter.verify.run_outcome import DIFFERS, EQUAL, FAULTS, NOT_RUN
from tools.kept_lines import KeptLines, commit

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coverage.md"
RESULTS = ROOT / "bench" / "results" / "coverage.json"
# Flags of the projects' own builds.
DEFINES: dict[str, tuple[str, ...]] = {
    "vllm": ("ENABLE_FP8",),
    "flashinfer": ("ENABLE_BF16", "ENABLE_FP8"),
    "DeepSpeed": ("BF16_AVAILABLE",),
    "FasterTransformer": ("ENABLE_BF16", "ENABLE_FP8"),
    "lmdeploy": ("ENABLE_BF16", "ENABLE_FP8"),
}
# Files whose instructions the usual target does not have: their originals do not compile for it either.
ARCHES = {"vllm/csrc/quantization/fp4/nvfp4_quant_kernels.cu": "sm_100a"}
SECONDS = 60  # for a kernel, compilation apart
FILE_SECONDS = 14_400
STATE = ROOT / ".porter" / "coverage"  # what is known of each file

# Chosen for what the kernels do (normalisation, softmax, activation, rotary, quantisation, routing, caches, sampling,
# optimisers) before porter could port any of them.
FILES: dict[str, tuple[str, ...]] = {
    "llm.c": (
        "dev/cuda/layernorm_forward.cu", "dev/cuda/layernorm_backward.cu", "dev/cuda/softmax_forward.cu",
        "dev/cuda/gelu_forward.cu", "dev/cuda/gelu_backward.cu", "dev/cuda/crossentropy_softmax_backward.cu",
        "dev/cuda/classifier_fused.cu", "dev/cuda/fused_residual_forward.cu", "llmc/layernorm.cuh",
        "llmc/fused_classifier.cuh",
    ),
    "vllm": (
        "csrc/layernorm_kernels.cu", "csrc/layernorm_quant_kernels.cu", "csrc/activation_kernels.cu",
        "csrc/pos_encoding_kernels.cu", "csrc/quantization/activation_kernels.cu",
        "csrc/quantization/w8a8/fp8/common.cu", "csrc/quantization/w8a8/fp8/per_token_group_quant.cu",
        "csrc/quantization/w8a8/int8/scaled_quant.cu",
        "csrc/quantization/fused_kernels/fused_layernorm_dynamic_per_token_quant.cu",
        "csrc/quantization/fp4/nvfp4_quant_kernels.cu", "csrc/moe/topk_softmax_kernels.cu",
        "csrc/moe/moe_align_sum_kernels.cu", "csrc/moe/grouped_topk_kernels.cu",
        "csrc/moe/permute_unpermute_kernels/moe_permute_unpermute_kernel.cu", "csrc/fused_qknorm_rope_kernel.cu",
        "csrc/cache_kernels.cu",
    ),
    "flashinfer": (
        "include/flashinfer/norm.cuh", "include/flashinfer/activation.cuh", "include/flashinfer/quantization.cuh",
        "include/flashinfer/pos_enc.cuh", "include/flashinfer/sampling.cuh", "csrc/fused_moe/noAuxTcKernels.cu",
    ),
    "apex": (
        "csrc/layer_norm_cuda_kernel.cu", "csrc/megatron/scaled_masked_softmax.h",
        "csrc/megatron/fused_rotary_positional_embedding.h", "csrc/multi_tensor_l2norm_kernel.cu",
        "apex/contrib/csrc/layer_norm/ln_fwd_kernels.cuh",
    ),
    "DeepSpeed": (
        "csrc/transformer/inference/csrc/rms_norm.cu", "csrc/transformer/inference/csrc/layer_norm.cu",
        "csrc/transformer/inference/csrc/softmax.cu", "csrc/transformer/inference/csrc/apply_rotary_pos_emb.cu",
        "csrc/transformer/inference/csrc/gelu.cu", "csrc/quantization/quantize.cu",
        "deepspeed/inference/v2/kernels/ragged_ops/moe_scatter/moe_scatter_cuda.cu",
        "deepspeed/inference/v2/kernels/ragged_ops/top_k_gating/top_k_gating_cuda.cu",
    ),
    "bitsandbytes": ("csrc/kernels.cu",),
    "LeetCUDA": (
        "kernels/rms-norm/rms_norm.cu", "kernels/layer-norm/layer_norm.cu", "kernels/softmax/softmax.cu",
        "kernels/rope/rope.cu", "kernels/gelu/gelu.cu", "kernels/elementwise/elementwise.cu",
    ),
    "pplx-kernels": ("csrc/all_to_all/intranode_dispatch.cu",),
    # chosen later, to see how porter does on projects that nobody had tried it on
    "FasterTransformer": tuple(
        f"src/fastertransformer/kernels/{name}_kernels.cu"
        for name in (
            "activation", "activation_fp8", "activation_int8", "add_residual", "layernorm", "layernorm_fp8",
            "layernorm_int8", "normalize", "unfused_attention", "softmax_int8", "quantization_int8", "sampling_topk",
            "sampling_topp", "sampling_penalty", "moe", "decoding", "gpt",
        )
    ),
    "lmdeploy": tuple(
        f"src/turbomind/kernels/{name}.cu"
        for name in (
            "activation", "activation_kernels", "norm/rms_norm", "norm/layer_norm", "quantization",
            "unfused_attention_kernels", "sampling_kernels", "sampling_topk_kernels", "sampling_topp_kernels",
            "sampling_penalty_kernels", "decoding_kernels", "gpt_kernels",
        )
    ),
}  # fmt: skip


def analyse(sources: Path, state: Path, jobs: int, only: Sequence[str] = ()) -> dict[str, Any]:
    """Run porter over the files that are there and have one of `only` in their name, not again over those in `state`.

    The kernels are the command's own JSON, file names below `sources`.
    """
    kernels: list[dict[str, Any]] = []
    missing: list[str] = []
    failed: dict[str, str] = {}
    commits: set[str] = set()
    for repository, files in FILES.items():
        for name in (f"{repository}/{n}" for n in files):
            if only and not any(part in name for part in only):
                continue
            if not (sources / name).is_file():
                missing.append(name)
                continue
            kept = KeptLines(state / (name.replace("/", "!") + ".jsonl"))
            if not kept.finished:
                start = time.monotonic()
                kept.begin(name, commit())
                found, trouble = run_porter(sources.resolve(), name, DEFINES.get(repository, ()), jobs)
                kept.end(name, found if not trouble else [{"failed": trouble}])
                kept.finish()
                print(f"{name}: {len(found)} kernels {trouble}, {time.monotonic() - start:.0f} s", file=sys.stderr)
            commits |= kept.commits
            for result in kept.results:
                if "failed" in result:
                    failed[name] = result["failed"]
                else:
                    kernels.append(result)
    return {
        "date": datetime.date.today().isoformat(),
        "commits": sorted(commits),
        "porter": __version__,
        "dsl": importlib.metadata.version("nvidia-cutlass-dsl"),
        "defines": DEFINES,
        "files": sum(map(len, FILES.values())) - len(missing) - len(failed),
        "missing": missing,
        "failed": failed,
        "kernels": kernels,
    }


def updated(results: dict[str, Any], new: dict[str, Any], files: Iterable[str]) -> dict[str, Any]:
    """Results in which the rows of these files are those of `new`, in the order of FILES."""
    ran = set(files) - set(new["missing"])
    order = {f"{repository}/{name}": n for n, (repository, name) in enumerate(_all_files())}
    kernels = [k for k in results["kernels"] if k["file"] not in ran] + new["kernels"]
    failed = {name: why for name, why in results["failed"].items() if name not in ran} | new["failed"]
    missing = [name for name in results["missing"] if name not in ran]
    return {
        **results,
        "date": new["date"],
        "dsl": new["dsl"],
        "porter": new["porter"],
        "commits": sorted({*results["commits"], *new["commits"]}),
        "files": len(order) - len(missing) - len(failed),
        "missing": missing,
        "failed": failed,
        "kernels": sorted(kernels, key=lambda k: order[k["file"]]),
    }


def _all_files() -> list[tuple[str, str]]:
    return [(repository, name) for repository, files in FILES.items() for name in files]


def run_porter(sources: Path, name: str, defines: tuple[str, ...], jobs: int) -> tuple[list[dict[str, Any]], str]:
    """The kernels of a file as `porter port --analyze --run` tells them, without paths of this machine; or why it
    told nothing."""
    command = [sys.executable, "-m", "porter.cli", "port", "--analyze", "--run", "--output-format", "json"]
    command += ["--arch", ARCHES.get(name, "sm_90a"), "--jobs", str(jobs), "--time-limit", str(SECONDS)]
    command += [f"-D{d}" for d in defines]
    with tempfile.TemporaryDirectory(prefix="porter-coverage-") as folder:
        try:
            run = subprocess.run(
                [*command, str(sources / name)], cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False,
                capture_output=True, timeout=FILE_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return [], f"not done after {FILE_SECONDS} s"
    if not run.stdout:
        return [], f"exit code {run.returncode}: {run.stderr.decode()[-300:]}"
    text = run.stdout.decode().replace(f"{sources}{os.sep}", "").replace(f"{ROOT}{os.sep}", "")
    text = re.sub(r"/[\w./-]*?/porter-analyze-\w+/", "", text)
    found: list[dict[str, Any]] = json.loads(text)["kernels"]
    for kernel in found:
        kernel.pop("seconds", None)
    return found, ""


def flags(defines: dict[str, Any]) -> str:
    told = [
        f"{repository}: {' '.join(f'`-D {d}`' for d in defines[repository])}"
        for repository in FILES
        if repository in defines
    ]
    return "; ".join(told)


def compiled(kernel: dict[str, Any]) -> bool:
    return bool(kernel["compiled"]) and kernel["emitted"] and not kernel["holes"]


def ran(kernel: dict[str, Any]) -> str:
    """What running original and port of a kernel that compiles showed; "" where it was not tried."""
    return str(kernel.get("outcome", "")) if compiled(kernel) else ""


def page(results: dict[str, Any]) -> str:
    """The page, from the results alone."""
    kernels = results["kernels"]
    rows = []
    for repository in FILES:
        rows.append((repository, [k for k in kernels if k["file"].split("/")[0] == repository]))
    rows.append(("**all**", kernels))
    lines = [
        "<!-- Generated by tools/coverage_table.py: do not edit. -->",
        "",
        "# Coverage",
        "",
        f"Kernels of {results['files']} public files that porter {results['porter']} ports with nothing but "
        f"the file: no case, no toolkit, no help. Measured {results['date']} with nvidia-cutlass-dsl "
        f"{results['dsl']} for sm_90a, with `porter port --analyze --run` and flags of the projects' own builds "
        f"({flags(results['defines'])}). For sm_100a instead, since sm_90a lacks their instructions: "
        f"{', '.join(f'`{name}`' for name in ARCHES)}.",
        "",
        "Each `__global__` definition counts once. A template counts when two instances pass (one when only one fits): "
        "those that the file launches, else guesses. *Compiled* means that CuTeDSL makes PTX of the port and ptxas "
        "accepts it; it says nothing about numbers, which `porter port` with a case verifies. Sources and versions: "
        "`python tools/real_sources.py`.",
        "",
        "*Equal*: original and port of each instance were run on the emulator under its sanitizer, a small launch or "
        "two with arguments that were made up from the signature; both ran clean, and all that they wrote is equal "
        "within the verifier's bounds. These arguments need not make sense to the kernel: *clean* counts the "
        "kernels whose original took some of them. It is not a verification, but a wrong port seldom passes it.",
        "",
        "FasterTransformer and lmdeploy were tried for the first time when the others were measured already. Of the 46 "
        "kernels in the files of lmdeploy that were tried then, 17 had no hole; what stopped the others has been "
        "fixed.",
        "",
        "| repository | kernels | parsed | lowered | without a hole | compiled | share | clean | equal | share |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, group in rows:
        done = sum(map(compiled, group))
        counts = [
            len(group),
            sum(k["parsed"] for k in group),
            sum(k["lowered"] for k in group),
            sum(k["emitted"] and not k["holes"] for k in group),
            done,
        ]
        share = f"{100 * done / len(group):.0f} %" if group else "-"
        equal = sum(ran(k) == EQUAL for k in group)
        clean = equal + sum(ran(k) == DIFFERS for k in group)
        same = f"{100 * equal / clean:.0f} %" if clean else "-"
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {share} | {clean} | {equal} | {same} |")
    for outcome, title in (
        (DIFFERS, "Ports that differ from their original"),
        (FAULTS, "Originals that fault on all made-up arguments, or read what has no value"),
        (NOT_RUN, "Compiled, and not run"),
    ):
        found = [k for k in kernels if ran(k) == outcome]
        if found:
            lines += ["", f"## {title}", "", "| kernel | instance | what the emulator says |", "|---|---|---|"]
            lines += [row for k in found for row in outcome_rows(k, outcome)]
    lines += ["", "## What stops the others", ""]
    codes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for k in kernels:
        if compiled(k):
            continue
        stops = sorted(k["holes"]) or [k["code"] or ("does not compile" if k["compiled"] is False else "PRT950")]
        for code in stops:
            codes[code] += 1
            examples.setdefault(code, f"{k['kernel']} ({k['file']})")
    if codes:
        lines += ["| code | kernels | for example |", "|---|---|---|"]
        for code, n in sorted(codes.items(), key=lambda item: (-item[1], item[0])):
            lines.append(f"| {code} | {n} | {examples[code]} |")
    if results.get("failed"):
        lines += ["", "Files for which the command told nothing: " + "; ".join(results["failed"]) + "."]
    if results["missing"]:
        lines += ["", f"Not measured, not in the folder: {', '.join(results['missing'])}."]
    return "\n".join(lines) + "\n"


def outcome_rows(kernel: dict[str, Any], outcome: str) -> list[str]:
    """A row of the page for each instance of a kernel with this outcome."""

    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("\n", " ")[:240]

    name = f"{kernel['kernel']} ({kernel['file']}:{kernel['line']})"
    return [
        f"| {cell(name)} | {cell(r['instance'])} | {cell(r['detail'])} |"
        for r in kernel["runs"]
        if r["outcome"] == outcome
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="?", type=Path, default=os.environ.get("PORTER_REAL_SOURCES"))
    parser.add_argument("--from-json", action="store_true", help="rebuild the page from bench/results/coverage.json")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="files with NAME in their name "
                        "(repeatable); without --update nothing is written yet")  # fmt: skip
    parser.add_argument("--update", action="store_true", help="run the files of --only again and write their rows")
    parser.add_argument("--again", action="store_true", help="run again the files that an earlier call has run")
    args = parser.parse_args()
    if args.from_json:
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    elif args.sources is None:
        parser.error("name the folder of the sources (tools/real_sources.py says how to lay it out)")
    else:
        if args.update and not args.only:
            parser.error("--update is for the files that --only names")
        if args.again:
            shutil.rmtree(STATE, ignore_errors=True)
        state = STATE.with_name("coverage-update") if args.update else STATE
        results = analyse(Path(args.sources), state, args.jobs, args.only)
        if args.update:
            names = [f"{r}/{n}" for r, n in _all_files() if any(part in f"{r}/{n}" for part in args.only)]
            results = updated(json.loads(RESULTS.read_text(encoding="utf-8")), results, names)
            shutil.rmtree(state, ignore_errors=True)  # the next update runs them anew
        elif args.only:
            return 0
        write_atomic(RESULTS, json.dumps(results, indent=1, sort_keys=True) + "\n")
    write_atomic(PAGE, page(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
