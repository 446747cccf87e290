"""Levels of this process's loggers, by name space."""

import logging


def set_level(namespace: str, level: int) -> list[str]:
    """Of all loggers of a name space; a new one is made. `root` is that of all. Gives the names it touched."""
    known = [name for name in logging.root.manager.loggerDict if name.startswith(f"{namespace}.")]
    names = ["root"] if namespace == "root" else sorted({namespace, *known})
    for name in names:
        named(name).setLevel(level)
    return names


def named(name: str) -> logging.Logger:
    return logging.getLogger(None if name == "root" else name)
