"""The settings in force, and changes to them."""
