"""The registry's side of validation, made when the first record is validated: until then nothing of it is imported."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.validation import PartName
from ottla.model.ports import Clock
from ottla.model.properties import Settings

if TYPE_CHECKING:
    from ottla.node.registry_schemas import RegistrySchemas


class LazySchemas:
    __slots__ = ("_clock", "_made", "_settings", "_url")

    def __init__(self, settings: Settings, clock: Clock, url: Callable[[], str | None]) -> None:
        self._settings = settings
        self._clock = clock
        self._url = url
        self._made: RegistrySchemas | None = None

    def _schemas(self) -> "RegistrySchemas":
        if self._made is None:
            from ottla.node.registry_schemas import RegistrySchemas  # noqa: PLC0415

            self._made = RegistrySchemas(self._settings, self._clock, self._url)
        return self._made

    async def objection(self, topic: str, part: PartName, strategy: str, mark: bytes) -> str:
        return await self._schemas().objection(topic, part, strategy, mark)

    async def objections(self, mark: bytes, payloads: Sequence[bytes]) -> list[str]:
        return await self._schemas().objections(mark, payloads)
