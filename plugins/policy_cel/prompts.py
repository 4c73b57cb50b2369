"""What the user of each session last wrote."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

MAX_SESSIONS = 10_000
MAX_CHARACTERS = 8 * 1024 * 1024
"""Over all sessions; one text alone is bounded by the context's own 5 MiB (§12.3)."""


class Prompts:
    """The latest user text per session, for hosts that send no message chain.

    Bounded: the session that was heard of least recently is forgotten first.
    Safe to share between threads.
    """

    def __init__(
        self, max_sessions: int = MAX_SESSIONS, max_characters: int = MAX_CHARACTERS
    ) -> None:
        self._max_sessions = max_sessions
        self._max_characters = max_characters
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def follow(self, context: dict[str, Any]) -> str | None:
        """The latest user text as of this context; None where there is none known.

        At `input` the input itself when its role is user; else the last user
        message of the chain that the context carries; else what was remembered.
        """
        point, session = context["interception_point"], context["session"]["id"]
        if point == "input" and context["input"]["role"] == "user":
            text = _text(context["input"]["content"])
            if text is not None:
                self._remember(session, text)
                return text
        text = _last_user_text(context.get("messages"))
        if text is None:
            text = self._recall(session)
        if point in ("agent_startup", "agent_shutdown"):
            self._forget(session)
        return text

    def __len__(self) -> int:
        return len(self._texts)

    def _remember(self, session: str, text: str) -> None:
        with self._lock:
            self._drop(session)
            self._texts[session] = text
            self._characters += len(text)
            while len(self._texts) > self._max_sessions or self._characters > self._max_characters:
                self._drop(next(iter(self._texts)))

    def _recall(self, session: str) -> str | None:
        with self._lock:
            if session in self._texts:
                self._texts.move_to_end(session)
            return self._texts.get(session)

    def _forget(self, session: str) -> None:
        with self._lock:
            self._drop(session)

    def _drop(self, session: str) -> None:
        self._characters -= len(self._texts.pop(session, ""))


def _last_user_text(messages: Any) -> str | None:
    if not isinstance(messages, list):
        return None
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            text = _text(message.get("content"))
            if text is not None:
                return text
    return None


def _text(content: Any) -> str | None:
    """The text of a message's content, whichever of the usual shapes it has.

    Parts of another type are left out: a tool result that travels in a user
    message (some model APIs want it so) is not what the user wrote.
    """
    match content:
        case str():
            return content
        case {"type": "text" | "input_text", "text": str(text)}:
            return text
        case {"text": str(text), **rest} if "type" not in rest:
            return text
        case list():
            texts = [text for part in content if (text := _text(part)) is not None]
            return "\n".join(texts) if texts else None
        case _:
            return None
