"""The client behind the command line, the platform and the pipelines: it speaks to any Kafka cluster, by wire alone.

Theory of operation. What a client does is written once, as steps: an operation is a generator that yields the requests
and pauses it wants, and is told the answers and the time (`steps`). So the rules need no socket and no clock to be
tested, and a face has nothing to decide:

- `wire` turns messages into bytes and back on one connection and agrees on versions (ApiVersions);
- `routing` knows leaders and coordinators, and what is asked again after which error, until which deadline;
- `offsets`, `fetching`, `producing`, `transacting` read and write; `admin`, `groups`, `partitions`, `transactions`,
  `quorum`, `throttles` are operations for administrators. Each is called with a face: `list_groups(cluster)` gives the
  list in the blocking one, and something to await in the asyncio one;
- `membership` is a member of a group by the classic protocol, of any type: answers and time in, effects out;
- `blocking/` waits in sockets, `aio/` on the loop; it also has the member that lives there.

Versions: each request goes out in the newest version that both sides have; what depends on it (topics by name or by id,
lists or single keys) is decided when the version is known, in the `make` of an Ask. KIPs: 98, 360 and 890 (producers,
transactions), 320 (stale metadata), 345, 394 and 814 (members), 447 (stable offsets), 511 (versions), 516 (topic ids).
"""
