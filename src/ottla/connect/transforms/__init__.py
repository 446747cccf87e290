"""To come."""

PLUGINS = ()
