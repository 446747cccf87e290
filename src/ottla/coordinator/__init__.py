"""Coordinators: groups and transactions, each a core over one partition of an internal topic."""
