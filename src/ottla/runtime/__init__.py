"""What makes cores act: loop, clock, disk and processes, for machines that have none of them.

Theory of operation. `runner` is the pattern: a command is decided, its records are appended and then replayed, in one
piece without an await; the answer is given when they are committed. `coordinator` does so for a shard of groups or
transactions over the log of its partition, `active` for the controller over the metadata log.

That log is kept by a quorum: `raft_driver` runs its core (votes and batches to the disk first, then questions and
answers to the others), `metadata_log` is its files, `snapshots` keeps it short, and `metadata_quorum` turns what is
committed into one image after the other. `control_plane` is the door to all of it for the rest of a node: the image,
and requests that change it, decided here or passed on (`forwarding`). `lifecycle` is a broker's life in the cluster;
`missing_brokers` asks after those whose connection broke; `formatting` and `joining` are the first start.

Below these: `clock` is the only reader of the time, `timers`, `tasks` and `errand` own what runs on the loop, `disk` is
the thread that calls fsync, `child` and `parent` are the two ends of a process that belongs to another; `cleaner` is
one.
"""
