"""Secrets in a configuration: references, resolved just before Configure (PROTOCOL Services).

`{"$secret": "env:NAME"}` and `{"$secret": "file:PATH"}` stand for a text that
nobody wrote into a file of the host's. The host hands it to the plugin and
keeps it out of whatever it shows, the plugin's own words included.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable
from typing import Final

from agent_hooks.core.values import JSON, ValueDomainError

KEY: Final = "$secret"
MAX_BYTES: Final = 65536
"""Of one secret."""

_HIDDEN = b"(secret)"
_FORM = f'expected {{"{KEY}": "env:NAME"}} or {{"{KEY}": "file:/PATH"}}, and nothing beside it'
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTEST_LINE = 4


class SecretError(ValueError):
    """References that cannot be resolved: a line each, with pointer, reference and remedy.

    A secret is in none of them, nor is what was written in a reference's place.
    """


class Secrets:
    """What a launch was told and nobody else may read."""

    __slots__ = ("_pattern", "reach")

    def __init__(self, values: Iterable[str] = ()) -> None:
        """`reach`: the length in bytes of the longest text that is hidden."""
        texts = sorted({text for value in values for text in _written(value)}, key=len)
        self.reach = len(texts[-1]) if texts else 0
        self._pattern = re.compile(b"|".join(map(re.escape, reversed(texts)))) if texts else None

    def hide(self, data: bytes) -> bytes:
        """The data with every secret replaced, as it is or as JSON or Python write it."""
        return data if self._pattern is None else self._pattern.sub(_HIDDEN, data)

    def hide_text(self, text: str) -> str:
        """As `hide`."""
        return self.hide(text.encode("utf-8", "replace")).decode("utf-8", "replace")


NO_SECRETS: Final = Secrets()


def _written(value: str) -> Iterable[bytes]:
    """How a secret may come to be written; of one of several lines, each is one."""
    for text in (value, *(line for line in value.splitlines() if len(line) >= _SHORTEST_LINE)):
        quoted = (json.dumps(text), json.dumps(text, ensure_ascii=False), repr(text))
        for form in (text, *(form[1:-1] for form in quoted)):
            yield form.encode()


def resolve(config: JSON) -> tuple[JSON, Secrets]:
    """A configuration with the texts that its references stand for.

    Args:
        config: a plain JSON object; unchanged.

    Raises:
        SecretError: a reference that is malformed, or names what is not there.
    """
    found: list[str] = []
    findings: list[str] = []
    resolved = _resolved(config, (), found, findings)
    if findings:
        raise SecretError("\n".join(findings))
    return resolved, Secrets(found)


def _resolved(
    value: JSON, at: tuple[str | int, ...], found: list[str], findings: list[str]
) -> JSON:
    if type(value) is dict and KEY in value:
        try:
            text = _secret(value, at)
        except ValueDomainError as refusal:
            findings.append(f"{refusal.pointer or '(root)'}: {refusal.problem}")
            return None
        found.append(text)
        return text
    if type(value) is dict:
        return {key: _resolved(item, (*at, key), found, findings) for key, item in value.items()}
    if type(value) is list:
        return [_resolved(item, (*at, i), found, findings) for i, item in enumerate(value)]
    return value


def _secret(reference: dict[str, JSON], at: tuple[str | int, ...]) -> str:
    if not at:
        raise ValueDomainError("a secret can be in a configuration, but cannot be all of it", at)
    written = reference[KEY]
    scheme, _, name = written.partition(":") if type(written) is str else ("", "", "")
    reads = _SCHEMES.get(scheme)
    if len(reference) != 1 or reads is None or not reads[0](name):
        raise ValueDomainError(_FORM, at)  # it may be the secret that stands there
    try:
        text = reads[1](name)
    except OSError as exc:
        raise ValueDomainError(f"{written}: cannot be read ({exc.strerror})", at) from None
    except ValueDomainError as refusal:
        raise ValueDomainError(f"{written}: {refusal.problem}", at) from None
    if not text:
        raise ValueDomainError(f"{written}: is empty", at)
    return text


def _from_environment(name: str) -> str:
    value = os.environb.get(name.encode())
    if value is None:
        raise ValueDomainError("is not set in the host's environment")
    return _text(value)


def _from_file(path: str) -> str:
    with open(path, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueDomainError("is not a regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueDomainError(f"is larger than {MAX_BYTES} bytes")
    # Editors and `echo` end a file with a line's end that is no part of the secret.
    return _text(data.removesuffix(b"\n").removesuffix(b"\r"))


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)  # a FIFO is not waited for


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueDomainError("is not text in UTF-8") from None


_SCHEMES: dict[str, tuple[Callable[[str], object], Callable[[str], str]]] = {
    "env": (_NAME.fullmatch, _from_environment),
    "file": (lambda path: path.startswith("/") and "\0" not in path, _from_file),
}
