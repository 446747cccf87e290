"""How many examples a property is tried with: a part of them on every run, all of them by `make matrix`.

Each run draws others, so that over the days all of them are tried anyway; what once failed is tried first.
"""

import os

THOROUGH = os.environ.get("OTTLA_THOROUGH") == "1"
USUAL = 100
"""Of a property that does not say."""
_PART = 4
_LEAST = 15


def examples(number: int) -> int:
    return number if THOROUGH else min(number, max(_LEAST, number // _PART))
