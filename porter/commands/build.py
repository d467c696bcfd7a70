"""`porter build`: kernels of the corpus compiled ahead of time into the cache, without a GPU."""

from __future__ import annotations

import argparse
from typing import Any

from porter.commands.options import Help


def add(subparsers: Any) -> None:
    from porter.corpus.build import add_arguments

    parser = subparsers.add_parser(
        "build",
        help="compile kernels of the corpus ahead of time",
        description="Compile kernels of the corpus into the cache, without a GPU, so that a service starts with them"
        ' ready. A configuration is {"op": "rms_norm", "tokens": [1, 128], "args": {"input": "bf16[T,4096]", ...}}:'
        " tensors as dtype[shape] or dtype[shape:strides], T stands for each number of tokens; sizes may be products"
        " (T*8), also rounded up to a multiple, up(T*8,128). --model takes the configurations from a model's"
        " config.json instead, as vLLM makes the calls; kinds: llama, mistral, qwen2, qwen3, qwen3_moe, mixtral,"
        " deepseek_v3, gpt_oss.\n"
        "Exit codes: 0 all compiled, 1 some did not, 2 wrong configurations.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from porter.corpus import build

    return build.run(args)
