"""Envelope: a client's request that a broker has passed on to the active controller (KIP-590).

The broker needs CLUSTER_ACTION to speak for others; what is in the envelope is decided in the name of the client, as if
it had come by itself.

Version 0 only.
"""

from collections.abc import Coroutine
from typing import Any

from ottla.broker.front.client import Client
from ottla.broker.front.dispatch import Route
from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import Underway
from ottla.broker.services import ControllerServices
from ottla.model.errors import Errors
from ottla.protocol.apis import API
from ottla.protocol.codec import DecodeError, Message
from ottla.protocol.frames import RequestHeader
from ottla.protocol.messages import EnvelopeRequest, EnvelopeResponse
from ottla.protocol.refusals import is_refusal
from ottla.runtime.forwarding import Sender, opened, opened_sender, sealed_reply


class Forwarded:
    """What handlers see in place of a session."""

    __slots__ = ("client", "client_id")

    def __init__(self, client: Client, client_id: str) -> None:
        self.client = client
        self.client_id = client_id


async def handle(
    services: ControllerServices, session: Session, request: EnvelopeRequest, version: int
) -> EnvelopeResponse:
    try:
        sender = opened_sender(request.request_principal or b"", request.client_host_address)
    except ValueError:
        return EnvelopeResponse(error_code=Errors.PRINCIPAL_DESERIALIZATION_FAILURE)
    try:
        header, inner = opened(request.request_data)
    except DecodeError:
        return EnvelopeResponse(error_code=Errors.UNSUPPORTED_VERSION)
    served = API[header.api_key].served
    route = session.routes.get(header.api_key)
    if served is None or not served.forwarded or route is None:
        return EnvelopeResponse(error_code=Errors.INVALID_REQUEST)
    answer = await _answered(services, _client(services, session, sender, route), route, header, inner)
    if is_refusal(answer, Errors.NOT_CONTROLLER):
        return EnvelopeResponse(error_code=Errors.NOT_CONTROLLER)
    return EnvelopeResponse(response_data=sealed_reply(header, answer))


def _client(services: ControllerServices, session: Session, sender: Sender, route: Route) -> Client:
    """The broker told who its client is and where it comes from; the listener is the one that the broker came by."""
    known = Client.known_as(
        sender.principal, sender.host, session.client.listener, services.authorizer, Underway(route.name)
    )
    return known._replace(by_token=sender.token_authenticated)


async def _answered(
    services: ControllerServices, client: Client, route: Route, header: RequestHeader, inner: Message
) -> Message:
    outcome: Message | Coroutine[Any, Any, Message] = route.handle(
        services, Forwarded(client, header.client_id or ""), inner, header.api_version
    )
    return outcome if isinstance(outcome, Message) else await outcome
