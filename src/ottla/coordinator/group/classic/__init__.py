"""The classic protocol: members join and sync, a leader among them assigns. Knows no other kind."""
