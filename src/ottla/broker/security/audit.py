"""The audit log of a node, on Kafka's logger: see `ottla.security.audit`."""

import logging

from ottla.model.ports import Clock
from ottla.security import audit
from ottla.security.audit import TEXT, Asked, Login

__all__ = ["Asked", "Audit", "Login"]

logger = logging.getLogger("kafka.authorizer.logger")


class Audit(audit.Audit):
    __slots__ = ()

    def __init__(self, clock: Clock, form: str = TEXT) -> None:
        super().__init__(clock, logger, form)
