"""Whoever took the wrong listener is told, by the node's log, which one is right."""

from collections.abc import Sequence

from ottla.model.properties import Listener


def advice(name: str, listeners: Sequence[Listener], *, encrypted: bool) -> str:
    """What the listener `name` is, and which other one does as the client does: with TLS (`encrypted`) or without."""
    own = next((each for each in listeners if each.name == name), None)
    is_controllers = own is not None and own.name.upper() == "CONTROLLER"
    is_now = f"which is {own.protocol}" if own is not None else "which is not"
    fitting = [
        each
        for each in listeners
        if each.name != name and ("SSL" in each.protocol) == encrypted and (is_controllers or each.name != "CONTROLLER")
    ]
    if fitting:
        where = " or ".join(f"{each} ({each.protocol})" for each in fitting)
        return f"{is_now}; the listener that would fit is {where}"
    if encrypted:
        return f"{is_now}; no listener of this node has TLS: security.protocol of the client has to be PLAINTEXT too"
    need = own.protocol if own is not None else "SSL"
    return f"{is_now}; every listener of this node has TLS: security.protocol of the client has to be {need}"
