"""The quorum that keeps the metadata log: KRaft (KIP-595, 853, 996, 1166) as a state machine without I/O.

**Events and effects.** `core.Quorum` is told of requests, responses, changes of its log and the time; each call gives
a list of effects (`exchange`): write the vote down, append, truncate, send, reply, advance. The driver
(`runtime.raft_driver`) carries them out in order and completes each before the next. What the core reads of the log
it reads through `LogView`; only effects change it.

**Roles** (`roles`) are records of state. `Unattached` knows its epoch and nobody to follow. Before it disturbs anyone
it becomes `Prospective` and asks whether it would win (PreVote). A `Candidate` has begun a new epoch and voted for
itself; a majority makes it `Leader`. A `Follower` fetches, as replication is by pull. A leader that cannot hold its
majority, or that stops, is `Resigned` and tells the others to elect. `TRANSITIONS` is the table of who may become
what; an epoch never falls. A node that is not a voter is an observer, Unattached or Follower for good: every broker
follows the log this way.

**What is committed.** The leader (`leader`) counts the log of each voter as far as its last fetch says, its own as
far as it is flushed; what a majority has is committed, but only once a record of the leader's own epoch is among it.
A follower (`follower`) whose last epoch ended earlier at the leader is told where, cuts its log back and asks again.
One that is too far behind fetches a snapshot (`snapshots`).

**Voters** (`voters`, `changes`) are either fixed by the settings or kept in the log, where one may be added or
removed at a time; the set counts from the moment its record is appended, not committed.

`tests/golden/raft` tells all of it as stories; `testing.sim.raft` plays millions of schedules under a seed.
"""
