"""The Messages API through its SDK, against a real server: what a reply becomes, and what each failure is called."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from porter.agents.messages import ModelRequest, ProviderError, Usage
from porter.agents.prices import dollars, price_of
from porter.agents.providers import Connection, connect
from porter.agents.settings import AgentSettings, check, find_key, load_settings
from porter.model import PorterError
from tests.agents.messages_server import Fail, Say, Step, call, script, serving, text

pytest.importorskip("anthropic", reason="needs the extra `agent`")
KEY = "ANTHROPIC_API_KEY"
REQUEST = ModelRequest(
    "claude-opus-5-5", 500, ("stable", "exemplars"), ({"name": "t", "input_schema": {"type": "object"}},),
    ({"role": "user", "content": [text("hello")]},),
)  # fmt: skip


def send(step: Step, timeout: float = 20.0):
    heard: list[str] = []
    with serving(script(step)) as served:
        provider = connect("anthropic_messages", Connection("key-1234", served.url, timeout))
        try:
            return provider.send(REQUEST, heard.append), heard, served
        except ProviderError as error:
            return error, heard, served


def test_streams_text_and_tool_calls_and_counts_tokens():
    step = Say([text("a long text " * 9), call("t", x=[1, "zwei"])], input=7, output=9, cache_read=5, cache_write=3)
    reply, heard, served = send(step)
    assert [b["type"] for b in reply.content] == ["text", "tool_use"]
    assert "".join(heard) == reply.content[0]["text"] == "a long text " * 9
    assert reply.content[1]["input"] == {"x": [1, "zwei"]} and reply.stop == "tool_use"
    assert reply.usage == Usage(7, 9, 5, 3)
    assert "key-1234" in served.headers[0].get("x-api-key", "") + served.headers[0].get("authorization", ""), (
        served.headers
    )


def test_the_wire_is_what_the_server_gets():
    _, _, served = send(Say([text("ok")]))
    url, body = connect("anthropic_messages", Connection("", served.url)).wire(REQUEST)
    assert (url, [body]) == (f"{served.url}/v1/messages", served.bodies) and served.contacts == 1


def test_marks_the_stable_prefix_and_the_last_message_for_the_cache():
    _, _, served = send(Say([text("ok")]))
    body = served.requests[0]
    assert ["cache_control" in b for b in body["system"]] == [False, True]
    assert "cache_control" in body["messages"][-1]["content"][-1]
    turns = [{"role": r, "content": [text("a"), text("b")]} for r in ("user", "assistant", "user", "assistant", "user")]
    with serving(script(Say([text("ok")]))) as served:
        provider = connect("anthropic_messages", Connection("key-1234", served.url))
        provider.send(replace(REQUEST, messages=tuple(turns)), lambda _: None)
    marks = [["cache_control" in b for b in m["content"]] for m in served.requests[0]["messages"]]
    assert marks == [[False, True], [False, False], [False, False], [False, False], [False, True]]
    assert all("cache_control" not in b for m in turns for b in m["content"])  # the request itself is not changed


@pytest.mark.parametrize("raw", ['{"x": ', "[1]", "nonsense"])
def test_input_that_is_no_object_is_kept_as_text(raw):
    reply, _, _ = send(Say([call("t")], raw_inputs=[raw]))
    assert reply.content[0]["input"] == {} and reply.content[0]["unreadable_input"] == raw


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Fail(401, "authentication_error", "invalid x-api-key"), "auth"),
        (Fail(403, "permission_error"), "forbidden"),
        (Fail(400, "invalid_request_error", "bad"), "bad-request"),
        (Fail(400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000"), "context-too-long"),
        (Fail(413, "request_too_large"), "context-too-long"),
        (Fail(500, "api_error"), "server"),
        (Fail(529, "overloaded_error"), "overloaded"),
        (Say([text("x" * 400)], cut_after=5), "connection"),
        (Say([text("x")], error_inside="overloaded_error"), "overloaded"),
    ],
)
def test_failures_have_a_kind(step, kind):
    error, _, _ = send(step)
    assert isinstance(error, ProviderError) and error.kind == kind
    if isinstance(step, Say):  # the prompt had been read: it may be charged
        assert error.usage.input == 1000


def test_rate_limit_says_when_to_come_back():
    error, _, _ = send(Fail(429, "rate_limit_error", retry_after="7"))
    assert (error.kind, error.retry_after, error.may_pass) == ("rate-limit", 7.0, True)


def test_slow_stream_is_read_to_its_end_and_silence_is_a_failure():
    reply, heard, _ = send(Say([text("slow " * 40)], pause=0.05), timeout=2.0)
    assert reply.content[0]["text"] == "slow " * 40 and len(heard) == 5
    error, _, _ = send(Say([text("x")], pause=3.0), timeout=0.5)
    assert isinstance(error, ProviderError) and error.kind == "connection"


def test_prices_are_exact_and_unknown_models_have_none():
    price = price_of("claude-haiku-4-5-20251001")
    assert price is not None
    assert price.of(Usage(1_000_000, 1_000_000, 1_000_000, 1_000_000)) == Decimal("1") + 5 + Decimal("1.25") + Decimal(
        "0.1"
    )
    tiers = price_of("claude-haiku-5-5")
    assert tiers is not None and tiers.of(Usage(input=100_001)) == Decimal("0.0500005")
    assert price_of("model-x") is None and price_of("model-x", {"model-x": dict.fromkeys(
        ("input", "output", "cache_read", "cache_write"), 2)}) is not None  # fmt: skip
    assert dollars(Decimal("0.005")) == "$0.01" and dollars(Decimal("0.001")) == "<$0.01"


def test_a_dollar_budget_needs_a_price():
    with pytest.raises(PorterError, match="price of model-x"):
        check(AgentSettings(model="model-x"))
    check(AgentSettings(model="model-x", usd=None, tokens=1000))


def test_settings_come_from_the_file_then_the_environment_then_flags(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.porter]\noutput = "o"\n[tool.porter.agent]\nmodel = "claude-opus-5"\nusd = "1.25"\n'
    )
    settings = load_settings(tmp_path, {})
    assert (settings.model, settings.usd) == ("claude-opus-5", Decimal("1.25"))
    assert load_settings(tmp_path, {"PORTER_AGENT_MODEL": "claude-sonnet-5"}).model == "claude-sonnet-5"
    assert load_settings(tmp_path, {"PORTER_AGENT_MODEL": "x"}, model="claude-opus-5-5").model == "claude-opus-5-5"
    from porter.config import load_config

    assert str(load_config(tmp_path).output).endswith("o")  # the table of the agent is not `porter port`'s
    (tmp_path / "pyproject.toml").write_text("[tool.porter.agent]\nmodell = 1\n")
    with pytest.raises(PorterError, match="unknown key `modell`"):
        load_settings(tmp_path, {})


def test_the_key_is_of_the_environment_or_of_a_command():
    assert find_key(AgentSettings(), KEY, {}) == ""
    assert find_key(AgentSettings(api_key_command="echo k2"), KEY, {}) == "k2"
    assert find_key(AgentSettings(api_key_command="echo k2"), KEY, {"ANTHROPIC_API_KEY": "k1"}) == "k1"
    for command, said in (
        ("printf ''", "printed nothing"),
        ("/no/such s3cret", "could not be run"),
        ("a 'b", "quotation"),
    ):
        with pytest.raises(PorterError, match=said) as raised:
            find_key(AgentSettings(api_key_command=command), KEY, {})
        assert "s3cret" not in str(raised.value.diagnostics)
    with pytest.raises(PorterError, match="exit code 1"):
        find_key(AgentSettings(api_key_command="false"), KEY, {})


def test_a_base_url_with_a_password_is_refused():
    with pytest.raises(PorterError, match="holds a user or password"):
        check(AgentSettings(base_url="https://me:secret@example.com/v1"))
    check(AgentSettings(base_url="https://example.com/@x"))


SECOND = """
from porter.agents.messages import ModelReply, Usage

def connect(connection):
    return Second(connection.key)

class Second:
    def __init__(self, key):
        self.key = key

    def send(self, request, on_text):
        on_text("hi")
        return ModelReply(({"type": "text", "text": f"{request.model} {self.key}"},), "end_turn", Usage(1, 2))

    def wire(self, request):
        return "second:", b"{}"
"""


def test_a_second_provider_is_one_new_file(tmp_path, monkeypatch):
    from porter.agents import providers

    (tmp_path / "second.py").write_text(SECOND)
    monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(tmp_path)])
    assert "second" in providers.names() and providers.key_variable("second") == ""
    reply = connect("second", Connection("k")).send(REQUEST, lambda text: None)
    assert reply.content[0]["text"] == "claude-opus-5-5 k"
    with pytest.raises(PorterError, match="no provider 'third'"):
        connect("third", Connection("k"))
