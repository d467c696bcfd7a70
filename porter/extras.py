"""What porter's optional parts need, as pip is asked for it.

The messages name these packages and not an extra of porter: an extra is written `.[dsl]` in a checkout and
`porter-cutedsl[dsl]` elsewhere, and on PyPI the name `porter` is another project's. tests/cli/test_install_hints.py
holds the table to pyproject.toml.
"""

from __future__ import annotations

DISTRIBUTION = "porter-cutedsl"  # what pip calls this package; the import and the command are `porter`

EXTRAS: dict[str, tuple[str, ...]] = {
    "dsl": ("nvidia-cutlass-dsl[cu13]>=4.8.1,<4.9",),
    "oracle": (
        "nvidia-cuda-nvrtc>=13.0",
        "nvidia-cuda-runtime>=13.0",
        "nvidia-cuda-crt>=13.0",
        "nvidia-cuda-cccl>=13.0",
        "nvidia-cuda-nvcc>=13.0",
    ),
    "torch": ("torch>=2.11", "apache-tvm-ffi>=0.1.15"),
    "review": ("textual>=8.0", "pygments>=2.18", "nvidia-cuda-nvdisasm>=13.0"),
    "agent": ("anthropic>=2.14,<3", "bm25s>=0.3.16"),
}


def install(extra: str, *packages: str) -> str:
    """The command that installs what an extra needs, or only those of its `packages`; right in every installation.

    Raises KeyError for an extra that there is not.
    """
    wanted = [r for r in EXTRAS[extra] if not packages or name_of(r) in packages]
    return " ".join(["pip install", *(f"'{r}'" for r in wanted)])


def name_of(requirement: str) -> str:
    """'nvidia-cutlass-dsl[cu13]>=4.8.1,<4.9' -> 'nvidia-cutlass-dsl'"""
    for mark in "[<>=!~; ":
        requirement = requirement.partition(mark)[0]
    return requirement
