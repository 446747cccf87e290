"""From the spawn of the server's process, in a new directory, to the first acknowledged record of a new topic.

The client tries to connect every 2 ms, asks Metadata to create the topic, and sends one record with acks=all until it
is acknowledged. Kafka's directory is formatted beforehand and that time is not counted; ottla formats its own.
"""

import time

from bench.context import Context, Factory
from bench.measures import Measure, Metric, Trial, measures, value_at_most
from bench.rounds import interleaved

NAME = "start"
METRICS = (Metric("seconds", "to the first acknowledged record", "s", value_at_most(0.5)),)


def run(context: Context) -> list[Measure]:
    def one(factory: Factory) -> Trial:
        server = context.new_server(factory)
        server.format()
        began = time.perf_counter()
        server.spawn()
        server.first_acknowledged()
        seconds = time.perf_counter() - began
        context.discard(server)
        return {"seconds": seconds}

    return measures(NAME, METRICS, interleaved(context.factories, context.rounds, one, warmups=1))
