"""Cleaning beside the node: the process that does it, and the node's end of the line to it."""
