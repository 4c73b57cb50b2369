"""What a host registers: an interceptor or resolver that lives in another process."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from agent_hooks.core.approval import ApprovalRequest, ApprovalResolution
from agent_hooks.core.call import Call, Cancel, Done
from agent_hooks.core.context import AgentContext, Bounds, ContextError, check_context
from agent_hooks.core.effects import Failed
from agent_hooks.core.grants import EVERYTHING, Grants
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.core.reasons import HostError
from agent_hooks.core.verdict import Verdict
from agent_hooks.supervisor.calls import Calls
from agent_hooks.supervisor.pending import Pending
from agent_hooks.wire.approval import decode_resolution, encode_resolve
from agent_hooks.wire.context import encode_request
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.plugin import APPROVAL_RESOLVER, INTERCEPTOR
from agent_hooks.wire.verdict import decode_response


class RemoteError(RuntimeError):
    """A remote interceptor that did not answer; raised by the plain `intercept` only."""


def _ignore(_: bool) -> None:
    pass


class RemoteInterceptor:
    """An interceptor plugin, as a host sees it.

    Attributes:
        timeout: seconds for one call, as its binding or manifest says.
        points: where it is bound, as its binding or manifest says.

    Args:
        grants: what its manifest lets it see and return, asked before each call.
    """

    is_remote = True

    def __init__(
        self,
        calls: Calls,
        timeout: float,
        points: tuple[str, ...],
        grants: Callable[[], Grants] = lambda: EVERYTHING,
    ) -> None:
        self._calls = calls
        self._grants = grants
        self.timeout = timeout
        self.points = points

    def start(self, call: Call, done: Done) -> Cancel:
        """Send one context; see `core.call.Startable`."""
        try:
            pending = _pending(call, self._grants())
        except WireError as refusal:
            done(Failed(HostError.INTERCEPTOR_FAILED, str(refusal)))
            return _ignore
        pending.done = done
        return _submit(self._calls, pending)

    def ask(self, call: Call) -> object:
        """Send one context and wait; see `core.call.Askable`."""
        try:
            return self._calls.ask(_pending(call, self._grants()))
        except WireError as refusal:
            return Failed(HostError.INTERCEPTOR_FAILED, str(refusal))

    def intercept(self, context: AgentContext) -> Verdict:
        """Ask once and wait, outside any emission.

        Raises:
            ContextError: no valid context.
            RemoteError: no answer, or none that is a verdict.
        """
        snapshot = check_context(context, Bounds(), context.get("spec", ""))
        reply = self.ask(Call(snapshot, "", EnforcementMode.ENFORCE, False, self.timeout))
        if isinstance(reply, Verdict):
            return reply
        raise RemoteError(reply.detail if isinstance(reply, Failed) else "no verdict")


def _pending(call: Call, grants: Grants) -> Pending:
    """A call with what the plugin may see in it, whose answer is held to what it may return."""
    deadline = time.monotonic() + call.timeout
    request = encode_request(
        grants.view(call.snapshot),
        emission_id=call.emission_id,
        mode=call.mode,
        approval_available=call.approval_available,
        timeout_ms=int(call.timeout * 1000),
        grants=grants,
    )
    return Pending(
        request,
        deadline,
        INTERCEPTOR,
        decode_response,
        admit=partial(grants.check, snapshot=call.snapshot),
        traceparent=call.traceparent,
        emission_id=call.emission_id,
    )


class RemoteResolver:
    """An approval resolver plugin, as a host sees it."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def start_resolve(self, request: ApprovalRequest, timeout: float, done: Done) -> Cancel:
        """Send one request; the answer is the resolution's JSON form, or `Failed`."""
        deadline = time.monotonic() + timeout
        try:
            shown = check_context(request.context, Bounds(), request.context["spec"])
            data = encode_resolve(request, shown)
        except (ContextError, WireError) as refusal:
            done(Failed(HostError.APPROVAL_RESOLVER_FAILED, str(refusal)))
            return _ignore

        def fail_as_resolver(reply: object) -> None:
            failed = isinstance(reply, Failed)
            done(Failed(HostError.APPROVAL_RESOLVER_FAILED) if failed else reply)

        return _submit(
            self._calls,
            Pending(data, deadline, APPROVAL_RESOLVER, decode_resolution, done=fail_as_resolver),
        )

    def resolve(self, request: ApprovalRequest) -> ApprovalResolution:
        """Resolvers in other processes are asked through `start_resolve`."""
        raise TypeError("use start_resolve: a remote resolver answers through a callback")


def _submit(calls: Calls, pending: Pending) -> Cancel:
    calls.submit(pending)
    return lambda timed_out: calls.cancel(pending, timed_out)
