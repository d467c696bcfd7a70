"""What tokens cost. The table is data (`prices.json`, dated); a model that is not in it has no price, never a guess."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any

from porter.agents.messages import Usage

TABLE = Path(__file__).with_name("prices.json")
FIELDS = ("input", "output", "cache_write", "cache_read")
_MILLION = Decimal(1_000_000)


@dataclass(frozen=True)
class Price:
    """USD per million tokens. Prompts of more than `above` tokens are charged as `long`, whole."""

    input: Decimal
    output: Decimal
    cache_write: Decimal
    cache_read: Decimal
    above: int = 0
    long: Price | None = None

    def of(self, usage: Usage) -> Decimal:
        """The exact USD of one reply; sums of these are exact too, and are rounded only when shown."""
        if self.long is not None and usage.prompt > self.above:
            return self.long.of(usage)
        return (
            self.input * usage.input
            + self.output * usage.output
            + self.cache_write * usage.cache_write
            + self.cache_read * usage.cache_read
        ) / _MILLION


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    return json.loads(TABLE.read_text(encoding="utf-8"))


def price_of(model: str, own: Mapping[str, Mapping[str, Any]] | None = None) -> Price | None:
    """The price of a model, `own` rows first; a dated name (`...-20251001`) is its family's. None when unknown.

    Raises ValueError for a row that is not a price.
    """
    for rows in (own or {}, table()["models"]):
        for name in (model, re.sub(r"-\d{8}$", "", model)):
            if name in rows:
                return _price(rows[name])
    return None


def _price(row: Mapping[str, Any]) -> Price:
    try:
        given, output, cache_write, cache_read = (Decimal(str(row[f])) for f in FIELDS)
    except (KeyError, InvalidOperation) as error:
        raise ValueError(f"a price needs {', '.join(FIELDS)} in USD per million tokens") from error
    if any(not value.is_finite() or value < 0 for value in (given, output, cache_write, cache_read)):
        raise ValueError("a price must not be negative")
    above = row.get("above")
    base = Price(given, output, cache_write, cache_read)
    return replace(base, above=int(above["prompt"]), long=_price(above)) if above else base


def dollars(amount: Decimal) -> str:
    """$1.23, to the cent; below half a cent `<$0.01`."""
    cents = amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
    return "<$0.01" if cents == 0 and amount > 0 else f"${cents}"
