"""`pytest --porter ported/`: a test for each port and check. Every pytest loads it, so it imports nothing early."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from porter.wording import plural

if TYPE_CHECKING:
    from porter.model import KernelReport, Report, Verdict


class CheckFailed(Exception):
    """A check that is not PASS; the text is what pytest shows."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("porter", "CuTeDSL ports")
    group.addoption(
        "--porter",
        action="append",
        default=[],
        metavar="PORTS",
        help="verify these ports (.py files, or folders of them): a test for each port and check (repeatable)",
    )
    group.addoption("--porter-seed", type=int, default=None, metavar="N", help="seed of the inputs (default: fresh)")
    group.addoption("--porter-against", default="", metavar="WHAT", help="as `porter verify --against`")
    group.addoption("--porter-backend", default=None, metavar="NAME", help="as `porter verify --backend`")
    group.addoption("--porter-timeout", type=float, default=None, metavar="S", help="seconds per port (default: 300)")


def pytest_configure(config: pytest.Config) -> None:
    """Ports are what is collected; with them, only what the command line names."""
    wanted = config.getoption("--porter")
    if wanted:
        named = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
        config.args = [*named, *(str(Path(p)) for p in wanted)]


def _is_port(file: Path, config: pytest.Config) -> bool:
    if file.suffix != ".py" or not file.with_name(file.stem + ".port.json").is_file():
        return False
    roots = [(config.invocation_params.dir / p).resolve() for p in config.getoption("--porter")]
    return any(file.resolve().is_relative_to(root) for root in roots)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if _is_port(file_path, parent.config):
        return PortFile.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A port is never imported as a test module, not even when the command line names it."""
    return Nothing.from_parent(parent, path=module_path) if _is_port(module_path, parent.config) else None


class Nothing(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield from ()


class PortFile(pytest.File):
    """One port. It is verified when the first of its checks is run, and once."""

    _report: Report | None = None

    def collect(self) -> Iterator[pytest.Item]:
        from porter.verify.run import CHECKS

        for check in ("contract", *CHECKS, "regression"):
            yield CheckItem.from_parent(self, name=check)

    def report(self) -> Report:
        """The report of this port. Raises PorterError."""
        if self._report is None:
            from porter.config import load_config, merge
            from porter.regression.all_ports import verify_ports
            from porter.regression.settings import TIMEOUT, Settings

            option = self.config.getoption
            config = merge(load_config(), seed=option("--porter-seed"), backend=option("--porter-backend"))
            settings = Settings(option("--porter-against"), timeout=option("--porter-timeout") or TIMEOUT, record=False)
            self._report = verify_ports([self.path], config, settings)
        return self._report


class CheckItem(pytest.Item):
    """One check of one port."""

    parent: PortFile

    def runtest(self) -> None:
        from porter.model import PorterError, Severity, Status

        try:
            report = self.parent.report()
        except PorterError as error:
            raise CheckFailed(_text(error.diagnostics)) from error
        errors = [d for d in report.diagnostics if d.severity is Severity.ERROR]
        errors += [d for k in report.kernels for d in k.diagnostics if d.severity is Severity.ERROR]
        if errors:
            raise CheckFailed(_text(errors))
        (kernel,) = report.kernels
        if kernel.holes:
            raise CheckFailed(f"{plural(len(kernel.holes), 'open hole')}: " + ", ".join(h.code for h in kernel.holes))
        contract = next((v for v in kernel.verdicts if v.check == "contract"), None)
        verdict = self.verdict(kernel)
        if contract is not None and contract.status is Status.FAIL:
            verdict = contract  # of every check: what the others said would be about another original or case
        if verdict is None:
            pytest.skip("nothing to compare with" if self.name == "regression" else "it was not run")
        self.add_report_section("call", "porter", f"{verdict.check} {verdict.status.value} {verdict.detail}")
        if verdict.status is Status.SKIP:
            pytest.skip(verdict.detail)
        if verdict.status is not Status.PASS:
            raise CheckFailed(f"{verdict.check} {verdict.status.value}: {verdict.detail}\n{_text(verdict.diagnostics)}")

    def verdict(self, kernel: KernelReport) -> Verdict | None:
        return next((v for v in kernel.verdicts if v.check == self.name), None)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, CheckFailed):
            return str(excinfo.value).rstrip()
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.parent.name} {self.name}"


def _text(diagnostics: Any) -> str:
    from porter.report.render import render

    return "\n\n".join(render(d).plain for d in diagnostics)
