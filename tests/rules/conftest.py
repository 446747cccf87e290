"""Hypothesis has no clock here: on a busy machine any example may wait for longer than the 200 ms it would be given."""

from hypothesis import HealthCheck, settings

settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")
