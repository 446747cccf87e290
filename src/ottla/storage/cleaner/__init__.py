"""Compaction: `plan` picks a log, `rewrite` works through it in a process of its own, the log swaps the result in."""
