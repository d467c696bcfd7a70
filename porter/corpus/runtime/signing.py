"""Signatures of what this user's cache says: a verdict that came with a checkout is not taken for one's own."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
from typing import Any

from porter.corpus.runtime.cache import cache_root


def signature(row: dict[str, Any]) -> str:
    """Of plain data, by this user on this machine. Raises OSError when the key can be neither read nor made."""
    path = cache_root() / "run.key"
    if not path.exists():
        with contextlib.suppress(FileExistsError):  # another process was quicker
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(handle, secrets.token_bytes(32))
            os.close(handle)
    text = json.dumps(row, sort_keys=True, ensure_ascii=False)
    return hmac.new(path.read_bytes(), text.encode(), "sha256").hexdigest()
