"""The name of this machine as Kafka finds it for listeners on every interface: Java's canonical host name."""

import socket


class NoHostName(Exception):
    """The machine does not know an address of its own name."""


def canonical_host_name() -> str:
    """The host's own address, and that address's name if the name leads back to it; else the address itself.

    Raises NoHostName. May ask name servers: to be called where waiting for them is of no harm.
    """
    own = socket.gethostname()
    try:
        address = str(socket.getaddrinfo(own, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise NoHostName(
            f"this machine's name, {own}, has no address ({error}), so a listener without a host cannot be advertised. "
            "Say in advertised.listeners what clients are to call it, or give the machine's name an address in "
            "/etc/hosts."
        ) from error
    try:
        name = socket.gethostbyaddr(address)[0]
        leads_back = any(answer[4][0] == address for answer in socket.getaddrinfo(name, None, socket.AF_INET))
    except OSError:
        return address
    return name if leads_back else address
