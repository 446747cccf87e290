"""The topic `_schemas`: its bytes (`codec`), its making (`topic`), who reads it (`reader`), who may write (`writer`).

Theory of operation. Everybody replays the topic from its beginning, for ever, and so comes to the same answers. One
registry at a time writes: the one that last took over the identity of a transactional id that all share, and then wrote
a NOOP under its higher epoch. From that NOOP on the partition itself refuses the batches of all who held the identity
before, whether they know it or not; and as whatever they wrote stands before the NOOP, who has replayed up to it knows
everything. No transaction is ever begun, so Confluent's registry reads the same topic without seeing any of this.

The NOOP names its writer in a header: that is how the others know whom to send their writes to.
"""
