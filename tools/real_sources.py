"""Where the public CUDA sources of tests/real come from, and whether a folder holds them.

`python tools/real_sources.py` prints how to lay out the folder; with the folder's name it says what is there.
Point PORTER_REAL_SOURCES at the folder. Nothing is fetched here and nothing of these projects is kept in porter.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


@dataclass(frozen=True)
class Origin:
    """One subfolder of the sources. Versions are those that tests/real/results.json was recorded with."""

    folder: str
    name: str  # a package on PyPI, or owner/name of a git repository on GitHub
    version: str
    kind: str  # wheel, sdist or git
    inside: str = ""  # the part of the archive that becomes the folder


ORIGINS = (
    Origin("flashinfer", "flashinfer-python", "0.7.4", "wheel", "flashinfer/data"),
    Origin("vllm", "vllm", "0.33.0", "sdist", "vllm-0.33.0"),
    Origin("llm.c", "karpathy/llm.c", "f1e2ace651495b74ae22d45d1723443fd00ecd3a", "git"),
    Origin("apex", "NVIDIA/apex", "6424da3b4faa6c8f062da4a48c424fff3f02d42d", "git"),
    Origin("DeepSpeed", "microsoft/DeepSpeed", "38327e07f6cd39b63418f60cedd1651b0be3e7c3", "git"),
    Origin("LeetCUDA", "xlite-dev/LeetCUDA", "cb6a0497e829741fc5e3ad5e43a5beed0d85edcd", "git"),
    Origin("bitsandbytes", "bitsandbytes-foundation/bitsandbytes", "95f9af309d4d5793847169c39288dcd3fcbdf564", "git"),
    Origin("FasterTransformer", "NVIDIA/FasterTransformer", "df4a7534860137e060e18d2ebf019906120ea204", "git"),
    Origin("lmdeploy", "InternLM/lmdeploy", "1263d5cd889b7ad500e85b8eb20401327a4516ab", "git"),
)


def steps(origin: Origin) -> str:
    """What a person does to get one subfolder."""
    if origin.kind == "git":
        return f"a git checkout of {origin.name} at {origin.version}, no submodules"
    how = "--no-binary :all: " if origin.kind == "sdist" else ""
    return (
        f"pip download --no-deps {how}{origin.name}=={origin.version}, unpack it, and move its {origin.inside}/ here; "
        f'a file VERSION with the line "Version: {origin.version}" keeps the version'
    )


def found(origin: Origin, folder: Path) -> str:
    """One line about a subfolder: absent, of the recorded version, or of another."""
    from tests.real.record import version_of

    if not folder.is_dir():
        return "absent: its tests are skipped"
    version = version_of(origin.folder, folder)
    return "as recorded" if version == origin.version else f"version {version}, recorded with {origin.version}"


def main() -> int:
    if len(sys.argv) > 2:
        print(__doc__)
        return 2
    for origin in ORIGINS:
        if len(sys.argv) == 2:
            print(f"{origin.folder:14} {found(origin, Path(sys.argv[1]) / origin.folder)}")
        else:
            print(f"{origin.folder}/\n    {steps(origin)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
