"""Every key of the review, declared once: footers, the help page and the command palette are made from this table."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True)
class Key:
    """A key on a screen (`where`), what it does, its word in the footer and its sentence in help and palette."""

    where: str
    key: str
    action: str
    label: str
    about: str
    footer: bool = True


KEYS = (
    Key("ports", "enter", "open", "Open", "open the port under the cursor"),
    Key("ports", "v", "verify", "Verify", "verify the port under the cursor in the background"),
    Key("ports", "V", "verify_all", "Verify all", "verify every port of the table, one after the other", False),
    Key("ports", "slash", "filter", "Filter", "show only the ports whose name or state has this text"),
    Key("ports", "s", "sort", "Sort", "sort by the next column"),
    Key("review", "a", "accept", "Accept", "accept the region under the cursor as it is, and go to the next open one"),
    Key("review", "r", "reject", "Reject", "reject the region: a rewrite becomes a hole, an edit is undone"),
    Key("review", "e", "editor", "Editor", "open the port at this line in $EDITOR; it is verified afterwards", False),
    Key("review", "i", "edit", "Edit", "edit the region in place; it is verified afterwards"),
    Key("review", "c", "comment", "Note", "comment on the region"),
    Key("review", "u", "withdraw", "Undecide", "withdraw the decision about the region", False),
    Key("review", "x", "explain", "Explain", "the pages of the diagnostic codes of the region", False),
    Key("review", "w", "why", "Why", "from the CUDA span through the IR to PTX and SASS"),
    Key("review", "n", "next_open", "Next", "go to the next region that is not accepted"),
    Key("review", "p", "previous_open", "Previous", "go to the previous region that is not accepted", False),
    Key("review", "slash", "search", "Search", "find text in the pane with the cursor", False),
    Key("review", "m", "search_next", "Again", "find the next occurrence", False),
    Key("review", "tab", "other_pane", "Other pane", "move the cursor between CUDA and CuTeDSL", False),
    Key("review", "z", "alone", "One pane", "show only the pane with the cursor, or both again", False),
    Key("review", "enter", "about", "About", "everything known about the region", False),
    Key("review", "v", "verify", "Verify", "verify the port in the background", False),
    Key("review", "d", "evidence", "Checks", "what each check found"),
    Key("review", "t", "attempts", "Attempts", "the agent's runs", False),
    Key("review", "3", "three_way", "3-way", "the CUDA as ported, the CUDA as it is, and the port", False),
    Key("evidence", "n,right", "next_tab", "Next check", "the next check"),
    Key("evidence", "p,left", "previous_tab", "Previous check", "the previous check"),
    Key("attempts", "tab", "other_side", "Other side", "move between the tree and the text", False),
    Key("attempts", "d", "diff", "Diff", "mark an attempt, or compare the one under the cursor with the marked one"),
    Key("three", "tab", "next_text", "Next text", "move the cursor to the next of the three texts"),
    Key("deeper", "escape", "back", "Back", "back to the previous screen"),
    Key("deeper", "backspace", "back", "Back", "back to the previous screen", False),
    Key("pane", "up,k", "move(-1)", "Up", "one line up", False),
    Key("pane", "down,j", "move(1)", "Down", "one line down", False),
    Key("pane", "pageup", "page(-1)", "Page up", "one page up", False),
    Key("pane", "pagedown,space", "page(1)", "Page down", "one page down", False),
    Key("pane", "home,g", "edge(0)", "Top", "the first line", False),
    Key("pane", "end,G", "edge(1)", "Bottom", "the last line", False),
    Key("pane", "left,h", "aside(-8)", "Left", "scroll to the left", False),
    Key("pane", "right,l", "aside(8)", "Right", "scroll to the right", False),
    Key("line", "escape", "dismiss(None)", "Cancel", "change nothing"),
    Key("page", "escape,q,enter", "dismiss(None)", "Close", "back to the screen below"),
    Key("edit", "ctrl+s", "save", "Save", "write the lines into the port, and verify it"),
    Key("edit", "escape", "leave", "Leave", "back; what was typed is kept for the next time"),
    Key("edit", "ctrl+r", "reset", "Start over", "the lines as they are in the port"),
    Key("app", "question_mark", "help_page", "Help", "all keys of this screen"),
    Key("app", "q", "quit", "Quit", "quit; every decision is already saved"),
)


def bindings(*where: str) -> list[BindingType]:
    """Textual's bindings of screens, in the order of the table. Those of the editor win over its text's."""
    rows = [k for k in KEYS if k.where in where]
    return [Binding(k.key, k.action, k.label, show=k.footer, priority=k.where == "edit") for k in rows]


def help_rows(*where: str) -> list[tuple[str, str]]:
    """The help page of a screen: a key and what it does."""
    return [(key_text(k.key), k.about) for k in KEYS if k.where in where]


def key_text(key: str) -> str:
    """A key as a person reads it."""
    names = {"slash": "/", "question_mark": "?"}
    return " ".join(names.get(part, part) for part in key.split(","))


def footer_key(key: Key) -> str:
    """The first of a row's keys, short."""
    return {"escape": "esc"}.get(first := key_text(key.key.partition(",")[0]), first)
