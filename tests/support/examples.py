"""How many examples a property is tried with, and seeds a simulation: a part on every run, all by `make matrix`.

Each run of a property draws others, so that over the days all of them are tried anyway; what once failed comes first.
"""

import os

THOROUGH = os.environ.get("OTTLA_THOROUGH") == "1"
USUAL = 100
"""Of a property that does not say."""
_PART = 4
_LEAST = 15


def examples(number: int) -> int:
    return number if THOROUGH else min(number, max(_LEAST, number // _PART))


def seeds(number: int) -> range:
    """Of a simulation: always the same ones, so that a red run is red again."""
    return range(number if THOROUGH else number // _PART)
