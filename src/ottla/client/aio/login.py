"""Logging in on a connection of the loop."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

from ottla.client.errors import LoginFailed
from ottla.protocol import messages
from ottla.security.sasl.speaker import Credentials, FetchToken, LoginRefused, SaltPassword, Told
from ottla.security.sasl.speaker import log_in as login_steps

if TYPE_CHECKING:
    from ottla.client.aio.connection import Connection

SHARE_OF_A_SESSION: Final = 0.9
"""After which a session that ends is renewed."""
_ANSWER_S: Final = 10.0


async def log_in(connection: Connection, credentials: Credentials) -> float:
    """In how many seconds to do so again; 0: never. Raises LoginFailed."""
    steps = login_steps(credentials, secrets.token_urlsafe(18))
    told: Told | None = None
    try:
        while True:
            step = next(steps) if told is None else steps.send(told)
            if isinstance(step, SaltPassword | FetchToken):
                told = await asyncio.get_running_loop().run_in_executor(None, step.done)
            else:
                told = await connection.call(step, messages.response_class(step.API_KEY), timeout_s=_ANSWER_S)
    except StopIteration as end:
        return float(SHARE_OF_A_SESSION * end.value / 1000)
    except LoginRefused as refusal:
        raise LoginFailed(str(connection.address), credentials.who, str(refusal)) from refusal
