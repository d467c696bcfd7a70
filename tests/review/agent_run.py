"""A record of an agent's run as porter.agents writes it: one attempt rolled back, two kept."""

from __future__ import annotations

import json
from pathlib import Path

FIRST = "w = v * 2.0\nreturn w\n"
SECOND = "return v + v\n"


def with_run(folder: Path) -> None:
    """Put it beside the ports of a folder."""
    usage = {"input": 1000, "output": 200, "cache_read": 0, "cache_write": 0}
    reply = {"event": "reply", "reply": {"content": [], "stop": "tool_use", "usage": usage}}

    def tool(code: str) -> dict[str, object]:
        return {"event": "tool", "name": "replace_region", "input": {"region": "hole-1", "code": code},
                "answer": "replaced; 0 holes open. Call verify to check it.", "error": False}  # fmt: skip

    events: list[dict[str, object]] = [
        {"event": "start", "kernel": "scale_kernel", "model": "claude-sonnet-4-5"},
        reply,
        tool("return v"),
        {"event": "rolled back", "attempt": 1, "regions": ["hole-1"]},
        reply,
        tool(FIRST),
        {"event": "kept", "attempt": 2, "regions": ["hole-1"], "check": "compile", "text": f"# port\n{FIRST}"},
        reply,
        tool(SECOND),
        {"event": "kept", "attempt": 3, "regions": ["hole-1"], "check": "numerics", "text": f"# port\n{SECOND}"},
        {"event": "end", "state": "verified", "ended": "done", "message": "every check passes"},
    ]
    path = folder / ".porter" / "runs" / "one" / "events.jsonl"
    path.parent.mkdir(parents=True)
    lines = [json.dumps({"n": n, "t": n * 1.5, **event}) for n, event in enumerate(events)]
    path.write_text("\n".join(lines) + '\n{"torn')
