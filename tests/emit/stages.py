"""What porter makes of a kernel's text at one stage."""

from __future__ import annotations

from pathlib import Path

from porter.config import PortConfig
from porter.pipeline.stages import show_stage


def emitted(folder: Path, stage: str, kernel: str, instances: tuple[str, ...] = ()) -> str:
    """The stage ("py", "ptx", ...) of a file with this text for sm_90a; asserts that there was no error."""
    source = folder / "k.cu"
    source.write_text(kernel)
    text, messages, code = show_stage(source, PortConfig(instantiate=instances, arch=("sm_90a",)), stage)
    assert code == 0, messages
    return text
