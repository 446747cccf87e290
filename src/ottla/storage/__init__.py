"""Logs on the disk, in Kafka's own bytes.

**A log** (`log.Log`) is one partition on this node: segments in order (`chain`, `segment`), their three indexes
(`index`), what is known of producers (`producer_state`) and of leader epochs (`epochs`). All of these must agree with
the batches, and can be made anew from them; `log` has the moves that keep them so. A client's batch is appended in
three steps if it is an ordinary one (`ordinary`), by all the rules of a leader otherwise (`leading`, `admission`); a
follower copies (`following`). A read gives a slice of a file, not bytes (`reading`). Batches stay opaque unless the
topic's settings demand a look inside (`validate`).

**The disk** is touched by `fs` alone. What `pwrite` took is in the page cache: it survives the process, not the
machine. The log notes what has to be flushed (`flush`) and a thread does it. The first error of a directory is
remembered by its `Latch`: nothing is retried there, as an fsync that failed once may succeed the next time although
the data is gone. A full disk is not such an error: the append is rolled back and the directory stays.

**Opening** (`opening`, `recovery`): after a clean stop only names and the last batches are looked at. Otherwise every
batch behind the recovery point is checked, and a torn tail is cut. Bad bytes with good ones behind them are damage, not
a torn tail: the log is left as it is and not served.

**Growing old.** `retention` says which segments go by age or size; `cleaner` compacts, in a process of its own that
is handed plain facts and gives replacements back, which the log swaps in if it is still what it was.

`directory` is one log directory: its lock, its identity (`meta.properties`), its checkpoints, its reserve.
"""
