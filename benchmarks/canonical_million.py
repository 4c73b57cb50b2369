"""Random documents through our canonical JSON and through the reference implementation.

    python benchmarks/canonical_million.py [N] [SEED]

N documents (1,000,000 by default) from SEED (the clock by default), spread over the
processors. Prints one line; exits 1 where any text differs. The documents are small
and rich in what RFC 8785 makes hard: floats at every magnitude, whole floats, −0.0,
the thresholds of the exponent form, subnormals, keys whose UTF-16 order differs from
their code-point order, and every escape.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any

import rfc8785

from agent_hooks.core.canonical import canonical_bytes

CHUNK = 5_000

AWKWARD: tuple[Any, ...] = (
    0.0, -0.0, 1.0, -1.0, 56.0, 0.1, 1e-4, 9.999999999999999e-5, 1e-5, 5e-6, 1e-6,
    9.999999999999997e-7, 1e-7, 1e15, 999999999999999.9, 1e16, 1e20, 1e21,
    999999999999999900000.0, 1e22, 9.999999999999997e22, 1e23, 5e-324, 2.2250738585072014e-308,
    1.7976931348623157e308, 9007199254740991.0, 9007199254740992.0, 9007199254740994.0,
    333333333.3333333, 1424953923781206.2, 4.35, 123456789012345.67,
    2**53 - 1, 1 - 2**53, 0, -1, 7, True, False, None, "", [], {},
)  # fmt: skip
CHARACTERS = (
    *map(chr, range(0x20)), *'"\\/aZ09 ~\x7f', "\x80", "é", "߿", "ࠀ", "\u2028", "\ud7ff",
    "\ue000", "\uf8ff", "\ufb33", "\ufeff", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff",
)  # fmt: skip


def documents(count: int, seed: int) -> Iterator[Any]:
    """`count` random JSON documents."""
    random = Random(seed)
    for _ in range(count):
        yield _container(random, 3)


def _value(random: Random, depth: int) -> Any:
    match random.getrandbits(3):
        case 0 | 1:
            return AWKWARD[random.getrandbits(10) % len(AWKWARD)]
        case 2:
            return _float(random)
        case 3:
            return random.getrandbits(53) * (1 if random.getrandbits(1) else -1)
        case 4:
            return _string(random)
        case 5:
            return round(random.uniform(-1e6, 1e6), random.getrandbits(2))
        case _:
            return _container(random, depth - 1) if depth else None


def _container(random: Random, depth: int) -> Any:
    size = random.getrandbits(2) + 1
    if random.getrandbits(2):
        return {_string(random): _value(random, depth) for _ in range(size)}
    return [_value(random, depth) for _ in range(size)]


def _float(random: Random) -> float:
    """Any finite double, each bit pattern alike."""
    bits = random.getrandbits(64)
    if bits >> 52 & 0x7FF == 0x7FF:
        bits ^= 1 << 62
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])


def _string(random: Random) -> str:
    return "".join(random.choices(CHARACTERS, k=random.getrandbits(2)))


def mismatches(count: int, seed: int) -> list[Any]:
    """Those of `count` documents whose texts differ."""
    return [
        document
        for document in documents(count, seed)
        if canonical_bytes(document) != rfc8785.dumps(document)
    ]


def main(count: int, seed: int) -> int:
    """Compare, report, and say how it went."""
    started = time.perf_counter()
    sizes = [min(CHUNK, count - start) for start in range(0, count, CHUNK)]
    seeds = [seed * 1_000_003 + index for index in range(len(sizes))]
    with ProcessPoolExecutor() as pool:
        different = [item for found in pool.map(mismatches, sizes, seeds) for item in found]
    print(
        f"canonical JSON: {sum(sizes)} documents, {len(different)} mismatches "
        f"(seed {seed}, {time.perf_counter() - started:.0f} s, {os.cpu_count()} processors)"
    )
    for document in different[:5]:
        print(ascii(document), file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:3]]
    sys.exit(main(*given, *(1_000_000, time.time_ns())[len(given) :]))
