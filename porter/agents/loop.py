"""One run: ask, use tools, judge, keep or roll back, until it is verified, nothing improves or a budget is gone."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from porter import codes
from porter.agents import prompts, tools
from porter.agents.budget import Spent
from porter.agents.copy_floor import at_copy_floor
from porter.agents.edit_session import EditSession, KeptEdit, StartingPort, Verifier, failing
from porter.agents.limiter import Limiter
from porter.agents.messages import Block, Message, ModelReply, ModelRequest, ProviderError, reply_from_json
from porter.agents.providers import Provider
from porter.agents.ranking import Rank, all_good, rank
from porter.agents.record import Journal
from porter.agents.settings import AgentSettings
from porter.agents.shared_budget import SharedBudget, count, most_of
from porter.model import Diagnostic, LineMapEntry, PorterError, Verdict
from porter.provenance.hole_markers import open_holes
from porter.wording import plural

SAME = 3  # calls with the same input and the same answer that make a loop
SILENT = 2  # replies without a tool call, after which the run ends
CUT = 3  # replies cut off at max_tokens, after which the run ends
BACKOFF = 2.0  # seconds before the second try, doubled for each further one
LONGEST = 120.0  # seconds that a server may ask to wait

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `state`: verified, improved, unchanged, unverified or refused-unseen say what the port is;
    `ended` is why the loop stopped, a word: done, gave-up, budget, no-improvement, loop, silent, cut, refusal,
    context, provider, no-case, no-harness (the original cannot be run here), not-verified."""

    state: str
    ended: str
    message: str
    text: str  # of the port to keep
    line_map: tuple[LineMapEntry, ...]
    verdicts: tuple[Verdict, ...]  # about `text`
    unseen: tuple[Verdict, ...]
    kept: tuple[KeptEdit, ...]
    candidate: str  # the best text, also where it is not to be kept
    spent: Spent
    settings: AgentSettings
    rank: Rank | None = None  # of `candidate`
    candidates: tuple[Outcome, ...] = ()  # where several were tried; the others' texts are dropped
    chosen: int = 0  # the number of the one that this is, from 1; 0: there was one only

    @property
    def changed(self) -> bool:
        return self.state in ("verified", "improved")

    @property
    def good(self) -> bool:
        """Whether the port to keep is verified, by this run or before it."""
        return all_good(self.verdicts, len(open_holes(self.text)))

    @property
    def cost(self) -> str:
        return self.spent.cost(self.settings)


class Stop(Exception):
    """The loop ends here."""

    def __init__(self, ended: str, message: str):
        super().__init__(message)
        self.ended, self.message = ended, message


@dataclass
class Run:
    """What a run needs. `say` is told lines for a person; `sleep` waits between tries."""

    subject: StartingPort
    verifier: Verifier
    provider: Provider | None  # None: the record must have every reply
    settings: AgentSettings
    journal: Journal
    limiter: Limiter = field(default_factory=Limiter)
    say: Say = lambda line: None
    sleep: Callable[[float], None] = time.sleep
    spent: Spent = field(default_factory=Spent)
    messages: list[Message] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    silent: int = 0
    cut: int = 0
    noted: int = 0  # messages that are in the record
    fresh: bool = True  # the last request was not in the record when it was made
    shared: SharedBudget | None = None  # with other candidates: holds for USD and tokens in place of the settings'
    ticket: int = -1  # of the request under way, with `shared`
    on_kept: Callable[[str], None] | None = None  # told the text of each edit that is kept

    @property
    def own_budget(self) -> AgentSettings:
        return replace(self.settings, usd=None, tokens=0) if self.shared else self.settings

    def go(self) -> Outcome:
        """The whole run. Raises PorterError PRT926 for a record that is not of this run, and what the verifier
        raises."""
        self.journal.add("start", kernel=self.subject.kernel, model=self.settings.model, port=_sha(self.subject.port))
        if not self.subject.has_case:
            return self.finish(None, Stop("no-case", "there is no case to verify against, so the model was not asked"))
        session = EditSession(self.subject, self.verifier, self.journal, on_kept=self.on_kept)
        session.open_baseline()
        try:
            self.begin(session)
            while True:
                self.turn(session)
        except Stop as stop:
            return self.finish(session, stop)
        finally:
            if self.shared is not None:  # whatever happened, nobody waits for this one
                self.shared.settle(self.ticket, None)

    def begin(self, session: EditSession) -> None:
        """The first message. Raises Stop where nothing is to be asked."""
        if self.subject.optimise and not session.done:
            raise Stop("not-verified", "only a verified port is optimised; fill or repair it first")
        if session.done and not self.subject.optimise:
            raise Stop("done", "the port is verified already")
        self.need_harness(session)
        self.stop_at_floor(session)
        regions = [r.name for r in session.draft.regions]
        self.messages = [prompts.first_message(self.subject, session.best_verdicts, regions)]

    def turn(self, session: EditSession) -> None:
        """One reply and what it asks for. Raises Stop."""
        self.check_budget(session)
        reply = self.ask(prompts.request_of(session, self.settings, self.messages))
        shown = [{k: v for k, v in block.items() if k != "unreadable_input"} for block in reply.content]
        if shown:
            self.messages.append({"role": "assistant", "content": shown})
        if reply.stop == "refusal":
            raise Stop("refusal", "the model refused the task")
        if reply.stop == "model_context_window_exceeded":
            raise Stop("context", "the conversation is too long for the model")
        calls = [b for b in reply.content if b["type"] == "tool_use"]
        cut = reply.stop == "max_tokens"
        self.cut = self.cut + 1 if cut else 0
        if self.cut >= CUT:
            raise Stop("cut", f"{CUT} replies in a row were cut off at {self.settings.max_tokens} tokens")
        if not calls:
            self.no_call(bool(shown), cut)
            return
        self.silent = 0
        results = [self.use(session, b, cut and b is reply.content[-1]) for b in calls]
        self.messages.append({"role": "user", "content": results})
        if session.attempts:
            self.need_harness(session)
        if session.gave_up:
            raise Stop("gave-up", f"the model gave up: {session.gave_up}")
        if session.done and not self.subject.optimise:
            raise Stop("done", "every check passes")
        self.stop_at_floor(session)
        if self.settings.patience and session.idle >= self.settings.patience:
            raise Stop("no-improvement", f"{plural(session.idle, 'attempt')} in a row improved nothing")

    def use(self, session: EditSession, block: Block, cut: bool) -> Block:
        """The result of one tool call. Raises Stop for a model that goes round in circles."""
        if cut:
            text, wrong = "your reply was cut off inside this call, so it was not run: send less per call", True
        elif self.settings.attempts and session.attempts >= self.settings.attempts and block.get("name") == "verify":
            text, wrong = "no attempts are left", True
        else:
            text, wrong = tools.use(session, block)
        text = str(self.journal.clean(text))
        called = {k: block.get(k) for k in ("name", "input")}
        self.journal.add("tool", **called, answer=text, error=wrong)
        self.say(f"{block.get('name')}: {text.splitlines()[0] if text else ''}")
        key = _sha(json.dumps([session.attempts, called, text], sort_keys=True))
        self.seen[key] = self.seen.get(key, 0) + 1
        if self.seen[key] >= SAME:
            raise Stop("loop", f"the model called {block.get('name')} {SAME} times with the same input and result")
        result: Block = {"type": "tool_result", "tool_use_id": block["id"], "content": text}
        return {**result, "is_error": True} if wrong else result

    def stop_at_floor(self, session: EditSession) -> None:
        floor = at_copy_floor(session.best_verdicts) if self.subject.optimise else ""
        if floor:
            raise Stop("done", f"nothing to gain: {floor}")

    def need_harness(self, session: EditSession) -> None:
        fault = session.why_unavailable()
        if fault:
            raise Stop("no-harness", f"the kernel cannot be verified here: {fault}")

    def no_call(self, said_something: bool, cut: bool) -> None:
        self.silent += 1
        if self.silent >= SILENT:
            raise Stop("silent", f"{SILENT} replies in a row called no tool")
        if self.subject.optimise and said_something and not cut:
            raise Stop("done", "the model has nothing more to try")
        words = "Call a tool: verify when the candidate is ready, give_up when it cannot be done."
        if cut:
            words = "Your reply was cut off. Be brief, and call a tool."
        if not said_something:  # a turn of the assistant cannot be empty, so the last turn is the user's already
            self.messages[-1] = {"role": "user", "content": [*self.messages[-1]["content"], _text(words)]}
            self.noted = min(self.noted, len(self.messages) - 1)  # the record shall have it as it is sent
        else:
            self.messages.append({"role": "user", "content": [_text(words)]})

    def check_budget(self, session: EditSession) -> None:
        self.spent.attempts = session.attempts
        self.spent.seconds = self.journal.seconds
        over = self.spent.over(self.own_budget)
        if over:
            raise Stop("budget", over)

    # ------------------------------------------------------------ requests

    def ask(self, request: ModelRequest) -> ModelReply:
        """The reply to a request, of the record or of the provider. Raises Stop when there will be none."""
        attempt = 0
        while True:
            attempt += 1
            if self.provider is None and not self.journal.replaying:
                help_ = "set ANTHROPIC_API_KEY, or api_key_command in [tool.porter.agent]"
                raise PorterError(
                    Diagnostic(
                        codes.NO_MODEL_KEY, "the record ends here, and there is no key to continue with", help=help_
                    )
                )
            self.reserve(request)
            self.note_request(request)
            past = self.journal.recall("reply", "failed")
            if past is None and not self.fresh:  # killed while it waited for this reply
                past = self.journal.write({"event": "failed", "kind": "interrupted", "message": "interrupted"})
            if past is None:
                past = self.send(request)
            count(self.spent, self.settings, past)
            if past["event"] == "reply":
                return reply_from_json(past["reply"])
            try:
                self.failed(past, attempt)
            except Stop:
                if not self.journal.goes_on():
                    raise
                attempt = 0

    def reserve(self, request: ModelRequest) -> None:
        """Of a budget that is shared. Raises Stop when it is used up, which is recorded: it depends on the others."""
        if self.shared is None:
            return
        past = self.journal.next_is("budget") and self.journal.recall("budget")
        if not past:
            if self.journal.replaying:
                return
            self.ticket, over = self.shared.admit(most_of(request, self.settings))
            past = self.journal.add("budget", message=over) if over else None
        if past:
            raise Stop("budget", str(past["message"]))

    def note_request(self, request: ModelRequest) -> None:
        """The request is on disk before it is sent: of the conversation what is new since the request before."""
        whole = request.to_json()
        new = whole["messages"][self.noted :]
        content = {"messages": new} if self.noted else {**whole, "messages": new}
        self.fresh = not self.journal.replaying
        self.journal.add("request", digest=request.digest, first=self.noted, **content)
        self.noted = len(whole["messages"])

    def send(self, request: ModelRequest) -> dict[str, Any]:
        assert self.provider is not None
        self.limiter.wait()
        event: dict[str, Any] | None = None
        try:
            reply = self.provider.send(request, lambda text: None)
            event = {"event": "reply", "reply": reply.to_json()}
        except ProviderError as error:
            if error.kind == "rate-limit":
                self.limiter.hold(min(LONGEST, error.retry_after or BACKOFF))
            event = {
                "event": "failed", "kind": error.kind, "message": error.message, "may_pass": error.may_pass,
                "retry_after": error.retry_after, "usage": error.usage.to_json(),
            }  # fmt: skip
        finally:
            if self.shared is not None:
                self.shared.settle(self.ticket, event)
        return self.journal.write(self.journal.clean(event))

    def failed(self, event: dict[str, Any], attempt: int) -> None:
        """Wait before the next try, or Stop when there is none."""
        kind, message = event["kind"], event["message"]
        if kind == "interrupted":
            return
        if kind == "context-too-long":
            raise Stop("context", f"the conversation is too long for the model: {message}")
        self.spent.seconds = self.journal.seconds
        over = self.spent.over(self.own_budget) if event.get("may_pass") else ""
        if over:  # before the last try is counted: a run that ends for want of an answer is taken up again
            raise Stop("budget", over)
        if not event.get("may_pass") or attempt > self.settings.retries:
            tries = f" ({attempt} tries)" if attempt > 1 else ""
            raise Stop("provider", f"{WHY.get(kind, 'the request failed')}: {message}{tries}")
        seconds = event.get("retry_after") or BACKOFF * 2 ** (attempt - 1)
        if seconds > LONGEST:
            raise Stop("provider", f"{WHY[kind]}: {message}; the server asks to wait {seconds:g} s")
        if not self.journal.replaying:
            self.say(f"{WHY[kind]}: {message}; retrying in {seconds:g} s")
            self.sleep(seconds)

    # ------------------------------------------------------------ the end

    def finish(self, session: EditSession | None, stop: Stop) -> Outcome:
        """Decide what is kept, after a last verification with seeds and shapes that the model has not seen."""
        self.spent.attempts = session.attempts if session else 0
        base, state = self.subject, "unchanged"
        unseen: tuple[Verdict, ...] = ()
        message = stop.message
        verdicts: tuple[Verdict, ...] = session.best_verdicts if session else ()
        text, line_map = base.port, base.line_map
        if session and session.kept:
            if session.done:
                unseen = session.verify(session.best, "unseen")
                if all_good(unseen, 0):
                    state, text, line_map = (
                        ("improved" if base.optimise else "verified"),
                        session.best.text,
                        session.line_map,
                    )
                else:
                    state = "refused-unseen"
                    bad = failing(unseen)
                    what = f"{bad[0].check}: {bad[0].detail}" if bad else "not everything was run"
                    message += f"; with unseen seeds and shapes it fails {what}"
            elif not base.holes and not base.optimise:
                unseen = session.verify(session.best, "unseen")
                if session.baseline and rank(unseen, 0).steps > session.baseline.steps:
                    state, text, line_map = "improved", session.best.text, session.line_map
                else:
                    state = "refused-unseen"
                    message += "; with unseen seeds and shapes it is no better than it was"
            else:
                state = "unverified"
                message += "; what was filled in is not verified and is left out of the port"
        if state not in ("verified", "improved") and session:
            verdicts = session.baseline_verdicts
        self.spent.seconds = self.journal.seconds
        self.journal.add("end", state=state, ended=stop.ended, message=message, port=_sha(text))
        candidate = session.best.text if session else base.port
        kept = tuple(session.kept) if session else ()
        return Outcome(
            state, stop.ended, message, text, line_map, verdicts, unseen, kept, candidate, replace(self.spent),
            self.settings, session.best_rank if session else None,
        )  # fmt: skip


WHY = {
    "auth": "the key was not accepted",
    "forbidden": "the key may not use this model",
    "bad-request": "the request was not accepted",
    "rate-limit": "too many requests",
    "overloaded": "the model is overloaded",
    "server": "the server failed",
    "connection": "the connection failed",
}


def _text(words: str) -> Block:
    return {"type": "text", "text": words}


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
