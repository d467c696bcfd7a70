"""How the agent is to work: `[tool.porter.agent]`, then the environment, then flags. Never holds the key itself."""

from __future__ import annotations

import os
import shlex
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from porter import codes
from porter.agents.prices import Price, price_of
from porter.case.toml_lines import key_line
from porter.config import find_pyproject
from porter.model import Diagnostic, PorterError
from porter.source import Span

KEY_SECONDS = 60.0  # for api_key_command
MOST_CANDIDATES = 16


@dataclass(frozen=True)
class AgentSettings:
    """Budgets are for one kernel. None or 0 as a budget means no limit of that kind."""

    provider: str = "anthropic_messages"
    model: str = "claude-opus-5-5"
    base_url: str = ""  # "": the provider's own
    api_key_command: str = ""  # prints the key; the provider's variable wins
    usd: Decimal | None = Decimal("2.00")
    tokens: int = 0
    attempts: int = 12  # candidates handed to the verifier
    seconds: float = 1800.0
    patience: int = 5  # attempts in a row that may improve nothing
    candidates: int = 1  # independent attempts at one kernel at once; USD, tokens and time are of all together
    max_tokens: int = 16000  # of one reply
    timeout: float = 120.0  # seconds without a byte from the server
    retries: int = 5  # of one request
    requests_per_minute: int = 50  # of all kernels of a run together
    runs: Path = Path(".porter/runs")
    prices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def price(self) -> Price | None:
        return price_of(self.model, self.prices)


_KINDS: dict[str, tuple[type, ...]] = {
    "provider": (str,), "model": (str,), "base_url": (str,), "api_key_command": (str,), "usd": (str, int, float),
    "tokens": (int,), "attempts": (int,), "seconds": (int, float), "patience": (int,), "max_tokens": (int,),
    "candidates": (int,),
    "timeout": (int, float), "retries": (int,), "requests_per_minute": (int,), "runs": (str,), "prices": (dict,),
}  # fmt: skip
_VARIABLES = {"PORTER_AGENT_MODEL": "model", "PORTER_AGENT_BASE_URL": "base_url", "PORTER_AGENT_PROVIDER": "provider"}


def load_settings(start: Path | None = None, environ: Mapping[str, str] | None = None, **flags: Any) -> AgentSettings:
    """The defaults, the file, the environment, then flags that are not None. Raises PorterError PRT920 or PRT921."""
    settings = AgentSettings()
    path = find_pyproject((start or Path.cwd()).resolve())
    if path is not None:
        text = path.read_text(encoding="utf-8")
        given = tomllib.loads(text).get("tool", {}).get("porter", {}).get("agent", {})
        if not isinstance(given, dict):
            raise _bad(path, text, "", "`agent` must be a table")
        for key, value in given.items():
            if key not in _KINDS:
                raise _bad(path, text, key, f"unknown key `{key}`; known are {', '.join(_KINDS)}")
            if not isinstance(value, _KINDS[key]) or isinstance(value, bool):
                raise _bad(path, text, key, f"`{key}` cannot be {value!r}")
        settings = _with(settings, given)
    variables = os.environ if environ is None else environ
    settings = _with(settings, {key: variables[name] for name, key in _VARIABLES.items() if variables.get(name)})
    return check(_with(settings, {k: v for k, v in flags.items() if v is not None}))


def _with(settings: AgentSettings, given: Mapping[str, Any]) -> AgentSettings:
    names = {f.name for f in fields(AgentSettings)}
    changes = {k: v for k, v in given.items() if k in names}
    if "usd" in changes:
        changes["usd"] = as_dollars(changes["usd"])
    if "runs" in changes:
        changes["runs"] = Path(changes["runs"])
    return replace(settings, **changes)


def as_dollars(value: Any) -> Decimal | None:
    """2, "2.50" or Decimal; "none" is no limit. Raises PorterError PRT920."""
    if value is None or str(value).lower() == "none":
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise PorterError(
            Diagnostic(codes.AGENT_SETTING, f"the USD budget is {value!r}", help="give dollars such as 2.50, or none")
        )
    return amount


def check(settings: AgentSettings) -> AgentSettings:
    """Raises PorterError PRT920 for values that cannot be, PRT921 for a USD budget of a model without a price."""
    for name in (
        "tokens",
        "attempts",
        "seconds",
        "patience",
        "max_tokens",
        "timeout",
        "retries",
        "requests_per_minute",
    ):
        if getattr(settings, name) < 0:
            raise PorterError(Diagnostic(codes.AGENT_SETTING, f"`{name}` of the agent is negative"))
    if not 1 <= settings.candidates <= MOST_CANDIDATES:
        message = f"`candidates` of the agent is {settings.candidates}"
        raise PorterError(Diagnostic(codes.AGENT_SETTING, message, help=f"give 1 to {MOST_CANDIDATES}"))
    if "@" in settings.base_url.partition("://")[2].partition("/")[0]:
        help_ = "give the key in ANTHROPIC_API_KEY or by api_key_command: the URL is written into the record of a run"
        raise PorterError(
            Diagnostic(codes.AGENT_SETTING, "the base URL of the model holds a user or password", help=help_)
        )
    try:
        price = settings.price
    except ValueError as error:
        raise PorterError(
            Diagnostic(codes.AGENT_SETTING, f"[tool.porter.agent.prices]: {settings.model}: {error}")
        ) from error
    if price is None and settings.usd is not None:
        raise PorterError(
            Diagnostic(
                codes.UNKNOWN_PRICE,
                f"the price of {settings.model} is not known, so a budget in USD cannot be kept",
                help="give its price in [tool.porter.agent.prices], or --budget-usd none with --budget-tokens N",
            )
        )
    if price is None and not settings.tokens:
        raise PorterError(
            Diagnostic(
                codes.UNKNOWN_PRICE, f"the price of {settings.model} is not known", help="give --budget-tokens N"
            )
        )
    return settings


def find_key(settings: AgentSettings, variable: str, environ: Mapping[str, str] | None = None) -> str:
    """The key: of that variable of the environment, else what `api_key_command` prints. "" without either.

    Raises PorterError PRT922 when the command fails, or for what cannot be a key. The key is never printed or written.
    """
    variables = os.environ if environ is None else environ
    key = variables.get(variable, "").strip()
    if key or not settings.api_key_command:
        return _one_word(key, variable)
    name = settings.api_key_command.split(" ")[0]  # its arguments are not shown
    try:
        done = subprocess.run(
            shlex.split(settings.api_key_command), capture_output=True, text=True, timeout=KEY_SECONDS, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        why = type(error).__name__ if isinstance(error, subprocess.TimeoutExpired) else str(error)
        raise PorterError(
            Diagnostic(codes.KEY_COMMAND_FAILED, f"api_key_command `{name}` could not be run: {why}")
        ) from None
    if done.returncode or not done.stdout.strip():
        what = f"ended with exit code {done.returncode}" if done.returncode else "printed nothing"
        raise PorterError(
            Diagnostic(
                codes.KEY_COMMAND_FAILED,
                f"api_key_command `{name}` {what}",
                help=f"or set {variable}" if variable else "",
            )
        )
    return _one_word(done.stdout.strip(), f"the output of api_key_command `{name}`")


def _one_word(key: str, where: str) -> str:
    """A key as a header of HTTP takes it: refused here, where its place is known, and not as a lost connection."""
    if all("!" <= c <= "~" for c in key):
        return key
    help_ = "it is the key alone: one line of ASCII characters without spaces"
    raise PorterError(Diagnostic(codes.KEY_COMMAND_FAILED, f"{where} is more than a key", help=help_))


def _bad(path: Path, text: str, key: str, message: str) -> PorterError:
    line = key_line(text, ("tool", "porter", "agent", *((key,) if key else ())))
    return PorterError(Diagnostic(codes.AGENT_SETTING, f"[tool.porter.agent]: {message}", Span(str(path), line)))
