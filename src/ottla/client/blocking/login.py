"""Logging in on a blocking connection."""

import secrets
import time
from typing import TYPE_CHECKING, Final

from ottla.client.errors import ConnectionLost, LoginFailed
from ottla.protocol import messages
from ottla.security.sasl.speaker import Credentials, FetchToken, LoginRefused, SaltPassword, Told
from ottla.security.sasl.speaker import log_in as login_steps

if TYPE_CHECKING:
    from ottla.client.blocking.connection import Connection

SHARE_OF_A_SESSION: Final = 0.9
"""After which a session that ends is renewed."""


def log_in(connection: "Connection", credentials: Credentials, deadline: float) -> float | None:
    """When to do so again, by time.monotonic(); None: never. Raises LoginFailed."""
    steps = login_steps(credentials, secrets.token_urlsafe(18))
    told: Told | None = None
    try:
        while True:
            step = next(steps) if told is None else steps.send(told)
            if isinstance(step, SaltPassword | FetchToken):
                told = step.done()
            else:
                told = connection.call(step, messages.response_class(step.API_KEY), deadline=deadline)
    except StopIteration as end:
        return time.monotonic() + SHARE_OF_A_SESSION * end.value / 1000 if end.value else None
    except LoginRefused as refusal:
        connection.close()
        raise LoginFailed(str(connection.address), credentials.who, str(refusal)) from refusal
    except ConnectionLost as lost:
        reason = f"it closed the connection in the middle of the login ({lost.reason})"
        raise LoginFailed(str(connection.address), credentials.who, reason) from lost
