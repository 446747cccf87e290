"""Kafka Connect: its REST API, config keys and internal topics; every connector a query in the Spark host.

Theory of operation. All that is lasting stands in three compacted topics, with Java's keys and JSON: `configs` is a
core that replays `connect-configs` (what is wanted: connectors, target states, restarts, the session key), `statuses`
the status topic (what is), `offsets` where sources stand. `herder` decides over them: a command of the REST API gives
records to be written; replaying them is the only thing that changes what is wanted, and how a worker comes back.
Workers with one `group.id` are members of a group (`membership`), whose leader hands out the connectors; any of them
answers any call and passes on what only the leader may decide. The worker a connector fell to starts it as a job in its
Spark host (`jobs`) and writes down what became of it.

What can be plugged in (connectors, converters, transforms, predicates) is a class with a `CONFIG` made of
`definitions`; it is named by a row of `plugins.Plugin` in its own room, `catalogue` puts the rows together, and code is
loaded when a connector asks for it. `api/` is Connect's REST, a file per family of calls; `service` what can be started
and stopped.
"""
