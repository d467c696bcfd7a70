"""Who serves a model. A provider is one module here with `connect(connection) -> Provider`, found by its name."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any, Protocol

from porter import codes
from porter.agents.messages import ModelReply, ModelRequest, OnText
from porter.extras import install
from porter.model import Diagnostic, PorterError

ANTHROPIC = "anthropic_messages"


@dataclass(frozen=True, repr=False)
class Connection:
    """What a provider needs. Has no repr: the key must not end up in a message."""

    key: str
    base_url: str = ""
    timeout: float = 120.0


class Provider(Protocol):
    """Sends one request and gives the whole reply; raises ProviderError. Neither retries nor records.

    Its module may name the environment variable of its key in KEY_VARIABLE; else there is `api_key_command` only.
    """

    def send(self, request: ModelRequest, on_text: OnText) -> ModelReply: ...

    def wire(self, request: ModelRequest) -> tuple[str, bytes]:
        """(URL, body) that send() would post, byte by byte. Sends nothing and needs no key."""
        ...


def names() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def key_variable(name: str) -> str:
    """The environment variable with the key of a provider, "" where it has none. Raises as `connect` does."""
    if name == ANTHROPIC:  # known without its SDK, so that a missing key is the first thing said
        return "ANTHROPIC_API_KEY"
    return str(getattr(load(name), "KEY_VARIABLE", ""))


def connect(name: str, connection: Connection) -> Provider:
    """The provider of that name. Raises PorterError PRT920 (no such one) or PRT923 (its SDK is not installed)."""
    provider: Provider = load(name).connect(connection)
    return provider


def load(name: str) -> Any:
    """The module of a provider. Raises as `connect` does."""
    if name not in names():
        raise PorterError(
            Diagnostic(codes.AGENT_SETTING, f"there is no provider {name!r}", help=f"one of {', '.join(names())}")
        )
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        message = f"the provider {name} needs the package {error.name}, which is not installed"
        raise PorterError(Diagnostic(codes.PROVIDER_NOT_INSTALLED, message, help=install("agent"))) from error
