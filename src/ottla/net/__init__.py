"""Framed sockets: connections from clients, and connections to other nodes.

Sockets are driven by the loop's readiness calls, not by transports, as neither asyncio's nor uvloop's can `sendfile`
without leaving the hot path. `connection` turns a socket into whole frames and sends chunks, of which some are slices
of files that never enter the process; all idle connections share one buffer. `peer` is the other direction: requests
to other nodes in order, each outcome told exactly once, whatever becomes of the connection. `listening` words why a
port cannot be had. A simulated cluster has another network in place of this room.
"""
