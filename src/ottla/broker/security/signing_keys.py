"""The keys that tokens of OAUTHBEARER are signed with: fetched off the loop, bounded in size and time, kept.

A set that cannot be fetched leaves the one before in force. A token with a key that is not in the set makes the set be
fetched anew, but for all such tokens together, and not more often than the back-off says: whoever sends made-up tokens
cannot make this node busy with it.
"""

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from ottla.model.ids import Millis
from ottla.model.ports import Clock
from ottla.net.reading_urls import read_url
from ottla.runtime.tasks import Tasks

logger = logging.getLogger(__name__)


class Source(NamedTuple):
    url: str
    """https, or http on loopback, or file; checked with the other settings."""
    max_bytes: int
    timeout_s: float
    refresh: Millis
    first_backoff: Millis
    longest_backoff: Millis


class FetchedKeys:
    __slots__ = ("_backoff", "_clock", "_executor", "_fetched", "_keys", "_next_try", "_running", "_source", "_tasks")

    def __init__(self, source: Source, clock: Clock, tasks: Tasks) -> None:
        """`tasks`: of whoever asks for keys."""
        self._source = source
        self._clock = clock
        self._tasks = tasks
        self._keys: dict[str | None, Any] = {}
        self._fetched: Millis | None = None
        self._next_try = clock.monotonic()
        self._backoff = source.first_backoff
        self._running: asyncio.Task[None] | None = None
        self._executor = ThreadPoolExecutor(1, "ottla-jwks")

    def find(self, key_id: str | None) -> Any:
        now = self._clock.monotonic()
        if self._fetched is not None and now - self._fetched >= self._source.refresh and now >= self._next_try:
            self._begin(now)  # the present one serves until the next is there
        return self._keys.get(key_id)

    async def fetch(self) -> None:
        """Until the set is as new as it can be had now. Never fails."""
        if self._running is None:
            now = self._clock.monotonic()
            if now < self._next_try:
                return
            self._begin(now)
        assert self._running is not None
        await asyncio.shield(self._running)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _begin(self, now: Millis) -> None:
        self._next_try = Millis(now + self._backoff)
        self._backoff = Millis(min(2 * self._backoff, self._source.longest_backoff))
        self._running = self._tasks.start(self._fetch(), "signing keys")

    async def _fetch(self) -> None:
        try:
            keys = await asyncio.get_running_loop().run_in_executor(self._executor, read_keys, self._source)
        except (OSError, ValueError, ImportError) as error:
            logger.warning("the keys at %s cannot be had: %s", self._source.url, error)
        else:
            if keys != self._keys:
                logger.info("%d signing keys are read from %s", len(keys), self._source.url)
            if keys.keys() - self._keys.keys():
                self._backoff = self._source.first_backoff
            self._keys, self._fetched = keys, self._clock.monotonic()
        finally:
            self._running = None


def read_keys(source: Source) -> dict[str | None, Any]:
    """By key id; under None the only one there is. Raises OSError, or ValueError for what is no set of keys."""
    limit = "ottla.sasl.oauthbearer.jwks.max.bytes"
    return parsed(read_url(source.url, timeout_s=source.timeout_s, max_bytes=source.max_bytes, limit=limit))


def parsed(data: bytes) -> dict[str | None, Any]:
    import jwt  # noqa: PLC0415  an extra, and heavy

    try:
        listed = json.loads(data)["keys"]
        assert isinstance(listed, list)
    except (ValueError, KeyError, TypeError, AssertionError, RecursionError) as error:
        raise ValueError("it is no set of JSON web keys") from error
    found: dict[str | None, Any] = {}
    for each in listed:
        # A key that is a shared secret has no business in a public set.
        if not isinstance(each, dict) or each.get("kty") not in ("RSA", "EC", "OKP") or each.get("use") == "enc":
            continue
        try:
            found[each.get("kid")] = jwt.PyJWK.from_dict(each).key
        except (jwt.PyJWTError, ValueError, TypeError):
            continue  # of a kind that is not known here; others in the set may be
    if len(found) == 1:
        found[None] = next(iter(found.values()))
    return found
