"""PostgreSQL's changes as Debezium writes them: `io.debezium…PostgresConnector`, or `postgres-cdc`.

Theory of operation. Changes are peeked at (`slot`: pg_logical_slot_peek_binary_changes with pgoutput) and decoded
(`pgoutput`, which knows bytes only); the slot is advanced once what was read is committed in the topics. So nothing is
consumed before it is written, and a read from the same position gives what comes next, whoever asks.

A position (`position`) is a place in the WAL: transactions whose commit record lies before it are in the topics. The
server skips by the same rule, so any place will do as an end, not only those between transactions; `Inside` is the one
place in the midst of a transaction, for those that are larger than a batch.

Tables are read first (`loading`), after the slot is there, so the stream repeats some of what they hold. One snapshot
of the database (a `View`) is shared by whoever reads; transactions that it shows are left out of the stream. If it is
lost, since its process died, the rest is read in chunks between changes, as incremental snapshots are, which signals
ask for (`signals`): a chunk and all changes up to where it was read go out in one batch, less those rows of it that
were changed while it was read. No key ever goes back in time, and no row is read twice.

`catalog` asks the server about tables, `tables` makes schemas of that (`columns`: a type each), `events` turns changes
into records: as Structs, or at once as the JSON that a JsonConverter would make of them, which is what most want and
several times as fast. `server` is the connection, and says which errors pass.
"""
