"""The consumer protocol (KIP-848): the coordinator assigns, members are told in their heartbeats."""
