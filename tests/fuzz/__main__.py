"""Coverage-guided fuzzing of one decoder: `python -m tests.fuzz TARGET CORPUS [libFuzzer options]`.

The corpus folder is seeded from the conformance vectors. An input that breaks a
property is written beside it and its traceback printed; the exit code is not 0.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["agent_hooks", "tomllib", "json"]):
    from tests.fuzz.seeds import seeds
    from tests.fuzz.targets import TARGETS

LIMITS = ("-timeout=10", "-rss_limit_mb=1024", "-malloc_limit_mb=512", "-max_len=65536")
"""Seconds for one input, and memory: what does not end or grows is a finding."""


def main() -> None:
    """Seed, set up, run until the time is over or something is found."""
    name, folder, *options = sys.argv[1:]
    corpus = Path(folder)
    corpus.mkdir(parents=True, exist_ok=True)
    for data in seeds()[name]:
        (corpus / hashlib.sha256(data).hexdigest()[:20]).write_bytes(data)
    target = TARGETS[name]
    found = f"-artifact_prefix={corpus.parent}/{name}-"
    atheris.Setup(
        [sys.argv[0], str(corpus), *LIMITS, found, *options], lambda data: _run(target, data)
    )
    atheris.Fuzz()


def _run(target: object, data: bytes) -> None:
    target(data)  # type: ignore[operator]


if __name__ == "__main__":
    main()
