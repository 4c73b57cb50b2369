"""The data that lies beside the project: schemas, golden files, vectors.

`AGENT_HOOKS_SHARED` says where; by default `../shared`, seen from the project's root.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def shared(*parts: str) -> Path:
    """A file or folder of the shared data.

    Where it is absent the test skips and says so; with CI=true it fails.
    """
    path = ROOT.joinpath(os.environ.get("AGENT_HOOKS_SHARED") or "../shared", *parts)
    if not path.exists():
        reason = f"shared data is absent ({'/'.join(parts)}): set AGENT_HOOKS_SHARED"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def shared_json(*parts: str) -> Any:
    """A parsed JSON file of the shared data. Read once; not to be changed."""
    return _parsed(shared(*parts))


@cache
def _parsed(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
