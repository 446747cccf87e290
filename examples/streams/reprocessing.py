r"""Processing again with a better program, while the old one still serves.

Version 1 counts the visits of every page. Version 2 leaves robots out. Each has its own application id, so its own
offsets, state and output topic: the second reads the input from the beginning without disturbing the first.

    ottla topics create visits page-counts-v1 page-counts-v2
    printf '/home {"agent": "firefox"}\n/home {"agent": "a robot"}\n' | ottla produce visits --key-separator ' '
    VERSION=1 ottla streams run examples/streams/reprocessing.py --once
    VERSION=2 ottla streams run examples/streams/reprocessing.py --once
    ottla consume page-counts-v1 page-counts-v2 -o start -e -f '%t %k %v{long}\n'
    ottla streams status                          # when version 2 has no lag, let readers move to page-counts-v2
    ottla streams reset --application-id page-counts-v1 --execute; ottla topics delete page-counts-v1
"""

import os

from ottla.streams import Consumed, Materialized, Produced, Serdes, StreamsApp, StreamsBuilder
from ottla.streams.expressions import value

VERSION = int(os.environ.get("VERSION", "1"))


def application(version: int) -> StreamsApp:
    builder = StreamsBuilder()
    visits = builder.stream("visits", Consumed(Serdes.string, Serdes.json("agent STRING")))
    if version >= 2:
        visits = visits.filter_not(value["agent"].lower().contains("robot"))
    counts = visits.group_by_key().count(Materialized("page-counts"))
    counts.to_stream().to(f"page-counts-v{version}", Produced(Serdes.string, Serdes.long))
    return StreamsApp(f"page-counts-v{version}", builder.build())


app = application(VERSION)
