"""Streams applications that are measured: what a user would write."""
