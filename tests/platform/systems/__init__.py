"""Real systems that connectors speak to, each started in a directory of its own on a free port."""
