"""What porter says to install is what helps: packages by their own names, in every kind of installation."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from porter import __version__
from porter.commands import installation
from porter.extras import DISTRIBUTION, EXTRAS, install, name_of
from porter.provenance.record import tool_versions
from porter.verify.compile import dsl_environments

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOREIGN = re.compile(r"\bporter\[|pip install [^`\n]*\bporter\b(?!-)")  # PyPI's `porter` is another project's
TEXTS = [
    *(ROOT / "porter").rglob("*.py"), *(ROOT / "porter" / "codes").glob("*.md"), *(ROOT / "docs").rglob("*.md"),
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "dev", ROOT / "constraints.txt",
]  # fmt: skip


def test_the_table_of_extras_is_that_of_the_project() -> None:
    optional = PROJECT["optional-dependencies"]
    assert {name: tuple(optional[name]) for name in EXTRAS} == EXTRAS
    assert PROJECT["name"] == DISTRIBUTION != "porter"
    assert optional["all"] == [f"{DISTRIBUTION}[{','.join(('dsl', 'oracle', 'torch', 'agent', 'review'))}]"]


def test_nothing_sends_people_to_another_projects_package() -> None:
    found = {str(p): m[0] for p in TEXTS if (m := FOREIGN.search(p.read_text(encoding="utf-8")))}
    assert not found
    for bad in ("pip install 'porter[torch]'", "`pip install porter`", "in `porter[review]`"):
        assert FOREIGN.search(bad)


def test_every_fix_of_doctor_names_packages_that_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "version_of", lambda package: None)
    monkeypatch.setattr("porter.verify.compile.nvdisasm.find_nvdisasm", lambda: None)
    fixes = {f.name: f.fix for f in installation.examine() if f.fix.startswith("pip install")}
    assert {"CuTeDSL", "NVRTC", "torch", "anthropic", "textual", "nvdisasm"} <= set(fixes)
    known = {name_of(r) for rs in PROJECT["optional-dependencies"].values() for r in rs}
    known |= {name_of(r) for r in PROJECT["dependencies"]}
    for name, fix in fixes.items():
        asked = [name_of(word.strip("'")) for word in fix.removeprefix("pip install ").split()]
        assert asked and set(asked) <= known - {DISTRIBUTION}, (name, fix)
    assert "'nvidia-cutlass-dsl[cu13]>=4.8.1,<4.9'" in fixes["CuTeDSL"]  # quoted: < would be a redirection


def test_one_package_of_an_extra() -> None:
    assert install("review", "nvidia-cuda-nvdisasm") == "pip install 'nvidia-cuda-nvdisasm>=13.0'"
    assert install("agent") == "pip install 'anthropic>=2.14,<3' 'bm25s>=0.3.16'"


def test_the_version_is_of_the_code_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "99" if name == "porter" else real(name))
    assert tool_versions()["porter"] == __version__ != "99"


def test_an_environment_of_another_dsl_gets_neither_porter_nor_its_namesake(monkeypatch: pytest.MonkeyPatch) -> None:
    class Item:
        version = "1.0"

        def __init__(self, name: str):
            self.metadata = {"Name": name}

    monkeypatch.setattr(metadata, "distributions", lambda: map(Item, ("porter", DISTRIBUTION, "numpy")))
    assert dsl_environments.pins() == ["numpy==1.0"]


def test_python_m_porter_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "porter", "--version"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, f"porter {__version__}\n")
