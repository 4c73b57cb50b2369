"""The command: `python -m tests.chaos --seed 1 --faults 200`."""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # connections break here, and gRPC says so

from tests.chaos.plan import FAULTS, Step, plan
from tests.chaos.report import lines, summary, text
from tests.chaos.run import run

_TOLD = 100


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description="Break plugins and hosts, and look what stands."
    )
    parser.add_argument("--seed", type=int, default=1, help="gives the sequence of faults")
    parser.add_argument("--faults", type=int, default=200, help="how many")
    parser.add_argument("--only", choices=FAULTS, help="this kind alone")
    parser.add_argument(
        "--slow", type=float, default=1.0, help="factor by which a slow machine may miss times"
    )
    parser.add_argument("--verbose", action="store_true", help="name every step")
    return parser.parse_args()


def main() -> int:
    """Run, report; 1 where a promise did not stand."""
    options, began = _options(), time.monotonic()

    def tell(step: Step) -> None:
        if options.verbose or step.number % _TOLD == 0:
            print(f"{time.monotonic() - began:7.1f} s  {step}", file=sys.stderr, flush=True)

    outcome = run(plan(options.seed, options.faults, options.only), options.slow, tell)
    for line in lines(outcome):
        print(line)
    if outcome.violation is not None:
        only = f" --only {options.only}" if options.only else ""
        count = outcome.step.number if outcome.step is not None else options.faults
        print(
            f"VIOLATION at seed {options.seed}, {outcome.step or 'the end'}: {outcome.violation}\n"
            f"again: python -m tests.chaos --seed {options.seed} --faults {count}{only} --verbose"
        )
    print(text(summary(options.seed, outcome, time.monotonic() - began)))
    return 0 if outcome.violation is None else 1


if __name__ == "__main__":
    sys.exit(main())
