"""Bugs planted into authorization, each of which the simulated cluster with changing ACLs must show."""

from typing import Any

from ottla.broker.front.client import Client
from ottla.broker.handlers import k58_envelope
from ottla.broker.security.authorizer import EVERYTHING
from ottla.broker.security.standard import StandardAuthorizer
from ottla.testing.sim.planted import Planted, Replacement


def _remembers_what_was_taken() -> list[Replacement]:
    return [(StandardAuthorizer, "forget", lambda self: None)]


def _misses_what_was_taken() -> list[Replacement]:
    whole = StandardAuthorizer._take

    def take(self: StandardAuthorizer, changed: Any) -> None:
        whole(self, {acl_id: record for acl_id, record in changed.items() if record is not None})

    return [(StandardAuthorizer, "_take", take)]


def _takes_the_brokers_word() -> list[Replacement]:
    whole = k58_envelope._client

    def client(*asked: Any) -> Client:
        return whole(*asked)._replace(may=EVERYTHING.may, sees=EVERYTHING.sees)

    return [(k58_envelope, "_client", client)]


BUGS = (
    Planted("remembers", "an answer is remembered through a change of the ACLs", _remembers_what_was_taken),
    Planted("misses", "a removed entry stays in the index", _misses_what_was_taken),
    Planted("takes-its-word", "the controller does not ask again what a broker passes on", _takes_the_brokers_word),
)
