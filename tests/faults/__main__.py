"""`python -m tests.faults --minutes 10 --against ottla --fault kill,pause --seed 3`: see docs/RELIABILITY.md."""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.faults.clients import LANGUAGES
from tests.faults.faults import FAULTS
from tests.faults.run import Plan, carry_out, summary, table

MIXED = "kill,killall,pause,partition,powercut,rolling,none"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Breaks a cluster and judges it.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--against", choices=["ottla", "kafka"], default="ottla")
    parser.add_argument("--fault", default=MIXED, help=f"comma-separated, of: {', '.join(FAULTS)} (default {MIXED})")
    every = ",".join(LANGUAGES)
    parser.add_argument("--clients", default=every, help=f"languages of writers and readers, of: {every} (default all)")
    parser.add_argument("--seed", type=int, default=None, help="repeats the choice of faults, not their exact timing")
    parser.add_argument("--strikes", type=int, default=None, help="end after so many")
    parser.add_argument("--rate", type=int, default=1000, help="records a second")
    parser.add_argument(
        "--acks", choices=["all", "1"], default="all", help="with 1, loss is expected and must be found"
    )
    parser.add_argument("--secured", action="store_true", help="SASL_SSL between all nodes and clients, and ACLs")
    parser.add_argument("--no-copy", action="store_true", help="without the transactional copy")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a property of every node")
    parser.add_argument("--keep", type=Path, default=None, metavar="DIR", help="where the history and the logs are put")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    seed = given.seed if given.seed is not None else random.randrange(1 << 30)
    plan = Plan(
        flavour=given.against,
        seconds=given.minutes * 60,
        faults=given.fault.split(","),
        clients=given.clients.split(","),
        seed=seed,
        rate=given.rate,
        acks=given.acks,
        copy=not given.no_copy,
        secured=given.secured,
        strikes=given.strikes,
        extra=dict(pair.split("=", 1) for pair in given.set),
    )
    directory = given.keep or Path(tempfile.mkdtemp(prefix="ottla-faults-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}; history and logs in {directory}", flush=True)
    outcome = carry_out(plan, directory)
    (directory / "outcome.json").write_text(summary(outcome))
    print(table(outcome))
    if plan.acks != "all":
        found = {"lost-write", "unseen"} & outcome.verdict.legal.keys()
        print("the loss was found" if found else "NO LOSS WAS FOUND: this harness would miss one")
        return 0 if found else 1
    return 0 if outcome.good else 1


if __name__ == "__main__":
    sys.exit(main())
