"""Users of a registry in a file of its own (`registry.users.file`), for clusters in which nobody logs in.

A line for each, as `ottla users hash NAME` writes it, in the form that PostgreSQL keeps passwords in:

    alice:SCRAM-SHA-512$16384:SALT$STORED_KEY:SERVER_KEY

The keys tell whether a password is right, and tell it to nobody. The file may change while the registry runs.
"""

import asyncio
import base64
import binascii
import hmac
import logging
import os
from typing import Final, NamedTuple

from ottla.http.auth import Basic, Bearer
from ottla.metadata.scram import SCRAM_BY_NAME, SCRAM_SHA_512, ScramMechanism, keys_of, salted_password
from ottla.registry.doors.proofs import Shown

logger = logging.getLogger(__name__)

ITERATIONS: Final = 16_384
_ITERATIONS: Final = range(4_096, 1_000_001)
_MOST_BYTES: Final = 16 << 20


class Kept(NamedTuple):
    """What is known of a password."""

    mechanism: ScramMechanism
    iterations: int
    salt: bytes
    stored_key: bytes

    def fits(self, password: str) -> bool:
        """Takes milliseconds."""
        salted = salted_password(self.mechanism, password, self.salt, self.iterations)
        return hmac.compare_digest(keys_of(self.mechanism, salted).stored, self.stored_key)


def line(name: str, password: str, salt: bytes) -> str:
    """Of the file. Raises ValueError for a name that cannot stand there."""
    if not name or name != name.strip() or any(each in name for each in ":#\n\r"):
        raise ValueError(f"{name!r} cannot be the name of a user: no colon, no #, no blanks around it")
    keys = keys_of(SCRAM_SHA_512, salted_password(SCRAM_SHA_512, password, salt, ITERATIONS))
    parts = [base64.b64encode(each).decode() for each in (salt, keys.stored, keys.server)]
    return f"{name}:{SCRAM_SHA_512.name}${ITERATIONS}:{parts[0]}${parts[1]}:{parts[2]}"


def parsed(text: str) -> dict[str, Kept]:
    """Raises ValueError with the number of the line; never tells what stands in it."""
    users = {}
    for number, each in enumerate(text.splitlines(), 1):
        if not each.strip() or each.startswith("#"):
            continue
        name, _, rest = each.strip().partition(":")
        try:
            users[name] = _kept(rest)
        except (ValueError, KeyError, binascii.Error):
            raise ValueError(
                f"line {number} is not NAME:SCRAM-SHA-512$ITERATIONS:SALT$STORED_KEY:SERVER_KEY, as `ottla users hash` "
                "writes it"
            ) from None
    return users


def _kept(text: str) -> Kept:
    name, settings, keys = text.split("$")
    iterations, salt = settings.split(":")
    stored, _ = keys.split(":")
    mechanism = SCRAM_BY_NAME[name]
    kept = Kept(mechanism, int(iterations), *(base64.b64decode(each, validate=True) for each in (salt, stored)))
    if kept.iterations not in _ITERATIONS or len(kept.stored_key) != mechanism.digest_bytes:
        raise ValueError(name)
    return kept


class UsersFile:
    def __init__(self, path: str) -> None:
        """Raises ValueError when it cannot be used."""
        self._path = path
        self._stamp = _stamp(path)
        self._users = _read(path)
        self._nobody = Kept(SCRAM_SHA_512, ITERATIONS, os.urandom(16), os.urandom(SCRAM_SHA_512.digest_bytes))
        """Takes as long to refuse as anybody: how long it takes must not tell who is in the file."""

    async def shown(self, given: Basic | Bearer) -> Shown | None:
        if isinstance(given, Bearer):
            return None
        return await asyncio.to_thread(self._checked, given)

    def _checked(self, given: Basic) -> Shown | None:
        self._renew()
        fits = self._users.get(given.user, self._nobody).fits(given.password)
        return Shown(f"User:{given.user}") if fits else None

    def _renew(self) -> None:
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._users = _read(self._path)
        except ValueError as error:
            logger.error("the users who were known before stay: %s", error)


def _stamp(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def _read(path: str) -> dict[str, Kept]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"registry.users.file: {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        return parsed(text)
    except ValueError as error:
        raise ValueError(f"registry.users.file: {path}: {error}") from None
