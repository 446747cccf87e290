"""Compaction: `plan` picks a log, `rewrite` works through it in a thread of its own, the log swaps the result in."""
