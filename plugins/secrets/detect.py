"""Credentials in text, by the detectors of detect-secrets, as exact spans.

Only the detectors' patterns and heuristics are used. Their `analyze_line` and
`scan_line` are for source files: they may verify over the network, keep global
settings, and name a secret without saying where in the line it stands.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.filters import heuristic
from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.keyword import QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP

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


@dataclass(frozen=True, slots=True)
class Span:
    """One secret: `text[start:end]`."""

    start: int
    end: int
    type: str


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


class Finder:
    """Finds secrets; safe to share between threads.

    Args:
        detectors: names from `DETECTORS`.
        allow: SHA-256, in hex, of secrets that are known and harmless.
    """

    def __init__(self, detectors: tuple[str, ...] = DEFAULT, allow: frozenset[str] = frozenset()):
        self._allow = allow
        self._whole: list[tuple[str, Callable[[str], Iterator[tuple[int, int]]]]] = []
        self._lines: list[tuple[str, Search]] = []
        types = []
        for name in detectors:
            detector = DETECTORS[name]()
            types.append(detector.secret_type)
            if name == "PrivateKeyDetector":
                self._whole.append((detector.secret_type, _private_keys))
            elif name in DEFAULT:
                self._whole += [(detector.secret_type, s.spans) for s in _searches(name, detector)]
            else:
                self._lines += [(detector.secret_type, s) for s in _searches(name, detector)]
        self._markers = re.compile("|".join(re.escape(marker(type_)) for type_ in types))

    def find(self, text: str) -> list[Span]:
        """Every secret in `text`, in order, none overlapping another."""
        # What is redacted already is blank, whatever stands around it.
        text = self._markers.sub(lambda found: " " * len(found[0]), text)
        spans = [
            Span(start, end, type_) for type_, spans in self._whole for start, end in spans(text)
        ]
        if self._lines:
            spans += self._find_in_lines(text)
        return _merged(
            Span(span.start, _end_of_token(text, span.end), span.type)
            for span in spans
            if not self._is_allowed(text[span.start : span.end])
        )

    def _find_in_lines(self, text: str) -> Iterator[Span]:
        for offset, line in _lines(text):
            for type_, search in self._lines:
                for start, end in search.spans(line):
                    yield Span(offset + start, offset + end, type_)

    def _is_allowed(self, secret: str) -> bool:
        return bool(self._allow) and hashlib.sha256(secret.encode()).hexdigest() in self._allow


def marker(secret_type: str) -> str:
    """What stands where a secret stood."""
    return f"[redacted:{secret_type}]"


def _merged(spans: Iterator[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Span(last.start, max(last.end, span.end), last.type)
        else:
            merged.append(span)
    return merged


_WORD = re.compile(r"\w*", re.ASCII)


def _end_of_token(text: str, end: int) -> int:
    """Some patterns have a fixed length that newer tokens exceed; the rest is secret too."""
    return _WORD.match(text, end).end() if _WORD.match(text, end - 1).end() > end - 1 else end  # type: ignore[union-attr]


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


_AWS_SECRET = r"([0-9A-Za-z/+]{40})(?![0-9A-Za-z/+=])"
_INSTEAD: dict[str, tuple[Search, ...]] = {
    # Theirs wants quotes on both sides: no .env file, no JSON inside a string.
    "AWSKeyDetector": (
        Search(re.compile(r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}")),
        Search(
            re.compile(
                r"(?i:aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?)[ \t'\"=:]"
                + _AWS_SECRET
            ),
            1,
            ("aws", "AWS", "Aws"),
            _is_no_hex,
        ),
        Search(
            re.compile(r"(?i:secret_?access_?key)\W{1,8}?" + _AWS_SECRET),
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
        Search(re.compile(_START + r"npm_[A-Za-z0-9]{36}")),
    ),
    # Theirs takes cubic time on "sk-sk-sk-…", and knows no key with - or _ near its middle.
    "OpenAIDetector": (
        Search(re.compile(_START + r"sk-[\w-]*T3BlbkFJ[\w-]{20,}", re.ASCII), 0, ("T3BlbkFJ",)),
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


def _searches(name: str, detector: Any) -> Iterator[Search]:
    if name in _INSTEAD:
        yield from _INSTEAD[name]
    elif isinstance(detector, HighEntropyStringsPlugin):
        yield Search(detector.regex, 2, keep=lambda secret: _is_random(detector, secret))
    elif name == "KeywordDetector":
        for regex, group in QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP.items():
            yield Search(regex, group, keep=_is_likely)
    else:
        keep = _is_real if name == "BasicAuthDetector" else bool
        for regex in detector.denylist:
            group = 0 if name in _WHOLE_MATCH else min(regex.groups, 1)
            yield Search(regex, group, _LITERALS.get(name, ()), keep)
    yield from _BESIDE.get(name, ())


def _is_random(detector: HighEntropyStringsPlugin, secret: str) -> bool:
    entropy = detector.calculate_shannon_entropy(secret)
    return _is_likely(secret) and entropy > detector.entropy_limit


# Detectors outside DEFAULT have patterns that are quadratic or worse in the length of a line
# or of a run of spaces; in pieces of this size that stays bearable.
_PIECE = 400
_OVERLAP = 100
_LINE = re.compile(rf"(?:(?!\s{{9}})[^\n{BOUNDARY}])+")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for line in _LINE.finditer(text):
        for start in range(line.start(), line.end(), _PIECE - _OVERLAP):
            yield start, text[start : min(start + _PIECE, line.end())]


# --- private keys: theirs finds the first line, a key has many ---

_BEGIN = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_BODY = re.compile(
    r"(?:(?:[\s\"',]|\\[nrt\"])*+(?:[A-Z][\w-]*+: [^\n\\]*+|[A-Za-z0-9+/=]{16,}+))++"
    r"(?:(?:[\s\"',]|\\[nrt\"])*+[A-Za-z0-9+/=]++)?"
)
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d:")
_PUTTY_END = re.compile(r"Private-MAC: [0-9a-fA-F]+")


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    if "PRIVATE KEY" in text:
        yield from _blocks(text, _BEGIN, _END, _end_of_body)
    if "PuTTY" in text:
        yield from _blocks(text, _PUTTY, _PUTTY_END, _end_of_text)


def _blocks(
    text: str,
    begin: re.Pattern[str],
    end: re.Pattern[str],
    cut_off: Callable[[str, int], int],
) -> Iterator[tuple[int, int]]:
    """From each begin to its end; where another key or text comes first, as `cut_off` says."""
    begins = [found.span() for found in begin.finditer(text)]
    ends = end.finditer(text)
    closing = next(ends, None)
    for index, (start, after) in enumerate(begins):
        while closing is not None and closing.start() < after:
            closing = next(ends, None)
        following = begins[index + 1][0] if index + 1 < len(begins) else len(text)
        limit = min(following, _end_of_text(text, after))
        if closing is not None and closing.end() <= limit:
            yield start, closing.end()
        else:
            yield start, min(cut_off(text, after), limit)


def _end_of_body(text: str, at: int) -> int:
    body = _BODY.match(text, at)
    return body.end() if body else at


def _end_of_text(text: str, at: int) -> int:
    boundary = text.find(BOUNDARY, at)
    return len(text) if boundary < 0 else boundary
