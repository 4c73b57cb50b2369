"""The detectors of detect-secrets, as patterns with the exact place of the secret.

Only their patterns and heuristics are used. Their `analyze_line` and `scan_line`
are for source files: they may verify over the network, keep global settings, and
name a secret without saying where in the line it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.filters import heuristic
from detect_secrets.plugins import keyword
from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin
from detect_secrets.plugins.jwt import JwtTokenDetector

BOUNDARY = "\x1e"
"""Between texts that have nothing to do with each other; no secret spans it."""

DETECTORS: dict[str, type[Any]] = {
    cls.__name__: cls for cls in get_mapping_from_secret_type_to_class().values()
}
"""Everything that detect-secrets ships, by the name that its own configuration uses."""

DEFAULT = (
    "PrivateKeyDetector",
    "AWSKeyDetector",
    "AzureStorageKeyDetector",
    "BasicAuthDetector",
    "DiscordBotTokenDetector",
    "GitHubTokenDetector",
    "GitLabTokenDetector",
    "JwtTokenDetector",
    "MailchimpDetector",
    "NpmDetector",
    "OpenAIDetector",
    "PypiTokenDetector",
    "SendGridDetector",
    "SlackDetector",
    "SquareOAuthDetector",
    "StripeDetector",
    "TelegramBotTokenDetector",
    "TwilioKeyDetector",
)
"""Those that know a secret by its own form; the others guess from names or randomness."""

IN_PIECES = {
    "CloudantDetector",
    "IbmCloudIamDetector",
    "IbmCosHmacDetector",
    "KeywordDetector",
    "SoftlayerDetector",
}
"""Quadratic or worse in the length of a word or of a run of spaces: only for short pieces."""


@dataclass(frozen=True, slots=True)
class Search:
    """One pattern; `group` is the secret, `literals` are cheap signs that it can match at all."""

    regex: re.Pattern[str]
    group: int = 0
    literals: tuple[str, ...] = ()
    keep: Callable[[str], bool] = bool

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where secrets stand in `text`."""
        if self.literals and not any(literal in text for literal in self.literals):
            return
        for found in self.regex.finditer(text):
            start, end = found.span(self.group)
            if start < end and self.keep(text[start:end]):
                yield start, end


# --- the patterns: the library's, or ours where its own will not do ---

_START = r"(?:(?<![\w-])|(?<=\\[nrt]))"
"""A token's first character; in JSON text inside a string a newline is a backslash and an n."""


def _is_jwt(token: str) -> bool:
    header_and_payload = ".".join(token.split(".")[:2])
    try:
        return bool(JwtTokenDetector.is_formally_valid(header_and_payload))
    except RecursionError:  # nested without end: no reason to let it pass
        return True


def _is_real(secret: str) -> bool:
    """Not <password>, ${PASSWORD} or ***."""
    return not (
        heuristic.is_templated_secret(secret) or heuristic.is_not_alphanumeric_string(secret)
    )


def _is_likely(secret: str) -> bool:
    return _is_real(secret) and not (
        heuristic.is_sequential_string(secret) or heuristic.is_potential_uuid(secret)
    )


def _is_no_hex(secret: str) -> bool:
    return re.fullmatch("[0-9a-fA-F]+", secret) is None


_AWS_40 = r"([0-9A-Za-z/+]{40})(?![0-9A-Za-z/+=])"
_INSTEAD: dict[str, tuple[Search, ...]] = {
    # Theirs wants quotes on both sides: no .env file, no JSON inside a string.
    "AWSKeyDetector": (
        Search(re.compile(r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}")),
        Search(
            re.compile(
                r"(?i:aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?)[ \t'\"=:]" + _AWS_40
            ),
            1,
            ("aws", "AWS", "Aws"),
            _is_no_hex,
        ),
        Search(
            re.compile(r"(?i:secret_?access_?key)\W{1,8}?" + _AWS_40),
            1,
            ("ccess", "CCESS"),
            _is_no_hex,
        ),
    ),
    # The key alone, so that what is left of a connection string still says what it is.
    "AzureStorageKeyDetector": (Search(re.compile(r"AccountKey=([a-zA-Z0-9+/=]{88})"), 1),),
    # Theirs stops before the signature, and takes quadratic time where no dot follows.
    "JwtTokenDetector": (
        Search(
            re.compile(_START + r"eyJ[\w-]++\.[\w-]++(?:\.[\w-]*+)?", re.ASCII),
            0,
            ("eyJ",),
            _is_jwt,
        ),
    ),
    # Theirs takes ten seconds for a megabyte of URLs in one line, and wants a registry.
    "NpmDetector": (
        Search(re.compile(r"_authToken=\s*+[\"']?(npm_\w{30,}|[A-Fa-f0-9-]{36})"), 1),
        Search(re.compile(_START + r"npm_[A-Za-z0-9]{36}"), 0, ("npm_",)),
    ),
    # Theirs takes cubic time on "sk-sk-sk-…", and knows no key with - or _ near its middle.
    "OpenAIDetector": (
        Search(re.compile(_START + r"sk-[\w-]*T3BlbkFJ[\w-]{20,}", re.ASCII), 0, ("T3BlbkFJ",)),
    ),
    # The same, but a pattern that begins with a colon is found ten times faster than one that
    # begins with a digit. What stands before the colon is the bot's public number.
    "TelegramBotTokenDetector": (Search(re.compile(r":(?<=[0-9]{8}:)([0-9A-Za-z_-]{35})"), 1),),
    # Theirs takes cubic time in places, and knows no quotes with a backslash before them.
    "KeywordDetector": (
        Search(
            re.compile(
                rf"(?:{'|'.join(keyword.DENYLIST)})\w*+(?:\\*+[\]'\"]){{0,2}}\s{{0,8}}+"
                r"(?::=|=>|={1,3}|!==?|:)\s{0,8}+@?\\*+(['\"`])(?=\w)([^\n'\"`\\]+)\\*+\1",
                re.IGNORECASE,
            ),
            2,
            keep=_is_likely,
        ),
    ),
}
_BESIDE: dict[str, tuple[Search, ...]] = {
    "GitHubTokenDetector": (Search(re.compile(r"github_pat_\w{60,}", re.ASCII)),),
}
_WHOLE_MATCH = {"GitHubTokenDetector", "GitLabTokenDetector"}
"""Their groups hold the prefix of the token, which is what `analyze_string` calls the secret."""

_LITERALS: dict[str, tuple[str, ...]] = {
    "MailchimpDetector": ("-us",),
    "SlackDetector": ("xox", "XOX", "slack.com", "SLACK.COM"),
    "StripeDetector": ("k_live_",),
}


def searches(name: str, detector: Any) -> Iterator[Search]:
    """The patterns of a detector, PrivateKeyDetector excepted."""
    if name in _INSTEAD:
        yield from _INSTEAD[name]
    elif isinstance(detector, HighEntropyStringsPlugin):
        yield Search(detector.regex, 2, keep=lambda secret: _is_random(detector, secret))
    else:
        keep = _is_real if name == "BasicAuthDetector" else bool
        for regex in detector.denylist:
            group = 0 if name in _WHOLE_MATCH else min(regex.groups, 1)
            yield Search(regex, group, _LITERALS.get(name, ()), keep)
    yield from _BESIDE.get(name, ())


def _is_random(detector: HighEntropyStringsPlugin, secret: str) -> bool:
    entropy = detector.calculate_shannon_entropy(secret)
    return _is_likely(secret) and entropy > detector.entropy_limit


# --- private keys: theirs finds the first line, a key has many ---

_BEGIN = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_BODY = re.compile(
    r"(?:(?:[\s\"',]|\\[nrt\"])*+(?:[A-Z][\w-]*+: [^\n\\]*+|[A-Za-z0-9+/=]{16,}+))++"
    r"(?:(?:[\s\"',]|\\[nrt\"])*+[A-Za-z0-9+/=]++)?"
)
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d:")
_PUTTY_END = re.compile(r"Private-MAC: [0-9a-fA-F]+")


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where private keys stand in `text`, first line to last."""
    if "PRIVATE KEY" in text:
        yield from _blocks(text, _BEGIN, _END, _end_of_body)
    if "PuTTY" in text:
        yield from _blocks(text, _PUTTY, _PUTTY_END, _end_of_text)


def _blocks(
    text: str,
    begin: re.Pattern[str],
    end: re.Pattern[str],
    cut_off: Callable[[str, int, int], int],
) -> Iterator[tuple[int, int]]:
    """From each begin to its end; where another key or text comes first, as `cut_off` says."""
    begins = [found.span() for found in begin.finditer(text)]
    ends = end.finditer(text)
    closing = next(ends, None)
    boundary = -1
    for index, (start, after) in enumerate(begins):
        while closing is not None and closing.start() < after:
            closing = next(ends, None)
        if boundary < after:
            boundary = text.find(BOUNDARY, after)
            boundary = len(text) if boundary < 0 else boundary
        limit = min(begins[index + 1][0] if index + 1 < len(begins) else len(text), boundary)
        if closing is not None and closing.end() <= limit:
            yield start, closing.end()
        else:
            yield start, cut_off(text, after, limit)


def _end_of_body(text: str, at: int, limit: int) -> int:
    body = _BODY.match(text, at, limit)
    return body.end() if body else at


def _end_of_text(_text: str, _at: int, limit: int) -> int:
    return limit
