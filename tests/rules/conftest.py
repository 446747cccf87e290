"""Hypothesis has no clock here: on a busy machine any example may wait for longer than the 200 ms it would be given."""

from hypothesis import HealthCheck, settings

from tests.support.examples import USUAL, examples

settings.register_profile(
    "busy machine", max_examples=examples(USUAL), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy machine")
