"""One partition's replication: its leader's and its followers' side, as state machines that deal in offsets only.

**The leader** (`leader.PartitionLeader`) hears of followers by their fetches: to ask for an offset is to have
everything below it. The high watermark is the least end over all that are, or may be, in sync (the maximal ISR,
KIP-497), and stands still below min.insync.replicas (KIP-966). A change of the ISR is proposed here and sent by
`broker.replicas.isr`: more replicas count at once, fewer only when the controller has agreed, so no error on the way
can commit too early.

**A follower** (`follower.PartitionFollower`) says what to ask for, and what to do with the answer: append, cut back
to where its log and the leader's agree (KIP-101, KIP-279, KIP-595), begin anew where the leader's log begins later,
wait or stop. An answer to a question that it would not ask any more is ignored. What a broker asks of one leader is a
chain of fetches over all partitions that it follows there (`fetch_chain.FetchChain`).

None of them has a log, a clock or a socket: they are told the time and the ends of logs. `tests/golden/replication`
shows them at work, `tests/rules/replication/cluster.py` lets brokers crash around them under a seed.
"""
