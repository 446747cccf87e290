"""Coordinators of groups and transactions, and what they need from other brokers."""
