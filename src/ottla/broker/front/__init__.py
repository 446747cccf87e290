"""The broker's door: listeners, sessions, and which handler answers which request."""
