"""What a predicate is: made of a connector's texts, then asked of each record."""

from abc import ABC, abstractmethod
from typing import ClassVar

from ottla.connect.data.record import ConnectRecord
from ottla.connect.definitions import ConfigDef, ParsedConfig, Texts
from ottla.connect.plugins import PluginType


class Predicate(ABC):
    PLUGIN_TYPE: ClassVar = PluginType.PREDICATE
    CONFIG: ClassVar[ConfigDef] = ConfigDef()

    def __init__(self, given: Texts) -> None:
        """`given`: the keys behind `predicates.<alias>.`. Raises ConfigError."""
        self.config: ParsedConfig = self.CONFIG.parse(given)

    @abstractmethod
    def test(self, record: ConnectRecord) -> bool: ...
