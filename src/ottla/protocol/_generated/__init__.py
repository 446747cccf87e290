"""Written by tools/generate_protocol.py; entered through ottla.protocol.messages only."""
