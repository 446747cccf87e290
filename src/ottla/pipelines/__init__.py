"""Where Spark meets Kafka: topics as data frames, and data frames into topics, exactly once.

    from ottla.pipelines import exactly_once, read_stream

`source` reads topics by wire into Arrow columns, with offsets that are planned on the driver; `sink` ends every
micro-batch with one transaction: records, the group's offsets and a marker. What Spark replays after a crash is skipped
if its marker is there, and was never seen if not. `checkpoint` reads what Spark keeps of a query, `settings` has what
all this relies on, `jvm` starts Spark's JVM and `daemon` the process that its Python workers are forked from, `workers`
has what is done once in each of these, `progress` counts.
Nothing here knows of streams, SQL or connectors: they are built on it.

Importing this package is cheap: Spark is loaded with the first of these names.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla.model.extras import named

if TYPE_CHECKING:
    from ottla.pipelines.sink.exactly_once import exactly_once as exactly_once
    from ottla.pipelines.source.connector import read_stream as read_stream

_MODULE_OF = {"exactly_once": "sink.exactly_once", "read_stream": "source.connector"}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Else Spark runs its workers with the first python3 of the PATH, which need not have ottla: a session that is built
    # after this import, by the user's own words, takes the Python of the program.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with named():
        found = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
