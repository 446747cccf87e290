"""A broker: it answers clients and other nodes, and keeps the partitions that the metadata image gives it.

Theory of operation. `front` is the door: a listener admits a connection, a session reads its requests one after the
other, finds the row of the API (`protocol.apis`), asks for what the row needs, and calls the one file in `handlers`
that bears its number. A handler is given `services` and nothing else; it returns the response, or something to await,
and replies leave in the order of the requests. What has to wait (produce for followers, fetch for bytes) is parked in
`waiting` and costs nothing until somebody completes it or its time is up.

`replicas` holds the partitions: `placement` makes, opens and deletes them as each new image says, `fetchers` copies
what others lead, `replicas` appends and tells who waits. `coordination` has a shard of groups or transactions for each
partition of an internal topic that is led here, and what these need of other brokers. `settings` lays the cluster's
dynamic settings over the file; `security` is asked who may do what, `quotas` how much of it (sessions charge
and mute by `front.share`); `housekeeping` flushes, retires and compacts.

Nothing here decides about the cluster: requests that change it go to `runtime.control_plane`, and what was decided
comes back as an image. What one part must hear of another is an event (`events`), joined by `node.broker`.
"""
