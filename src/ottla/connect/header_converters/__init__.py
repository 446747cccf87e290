"""Headers' bytes as values and back. Each converter of values is one for headers too; `simple` is the default one."""

from typing import Final

from ottla.connect.converters import PLUGINS as CONVERTERS
from ottla.connect.plugins import Plugin, PluginType

PLUGINS: Final = (
    Plugin(
        "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        PluginType.HEADER_CONVERTER,
        "ottla.connect.header_converters.simple:SimpleHeaderConverter",
    ),
    *(
        Plugin(row.class_name, PluginType.HEADER_CONVERTER, row.location)
        for row in CONVERTERS
        if row.class_name.startswith("org.apache.")
    ),
)
