"""Who serves a model. A provider is one module here with `connect(connection) -> Provider`, found by its name."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Protocol

from porter.agents.messages import ModelReply, ModelRequest, OnText
from porter.model import Diagnostic, PorterError


@dataclass(frozen=True, repr=False)
class Connection:
    """What a provider needs. Has no repr: the key must not end up in a message."""

    key: str
    base_url: str = ""
    timeout: float = 120.0


class Provider(Protocol):
    """Sends one request and gives the whole reply; raises ProviderError. Neither retries nor records."""

    def send(self, request: ModelRequest, on_text: OnText) -> ModelReply: ...


def names() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def connect(name: str, connection: Connection) -> Provider:
    """The provider of that name. Raises PorterError PRT920 (no such one) or PRT923 (its SDK is not installed)."""
    if name not in names():
        raise PorterError(Diagnostic("PRT920", f"there is no provider {name!r}", help=f"one of {', '.join(names())}"))
    try:
        module = importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        message = f"the provider {name} needs the package {error.name}, which is not installed"
        raise PorterError(Diagnostic("PRT923", message, help="pip install 'porter[agent]'")) from error
    provider: Provider = module.connect(connection)
    return provider
