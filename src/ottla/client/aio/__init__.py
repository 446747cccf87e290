"""The asyncio face of the client: `cluster` runs steps on the loop, `producer`, `reader` and `member` live on it.

A task is always somebody's: a cluster ends those that open connections, a reader those that fetch, a producer the one
that writes, a member runs inside its `run`. What waits long (fetches, joins) has connections of its own: a lane.
"""
