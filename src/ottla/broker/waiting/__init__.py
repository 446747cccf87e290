"""Requests that cannot be answered yet."""
