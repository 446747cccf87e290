"""Generated; entered through ottla.protocol.messages only."""
