"""Addresses, as Java reads them."""

from typing import Final

from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e

FUNCTIONS: Final = table(
    scalar("URL_DECODE_PARAM", e.url_decode, "STRING -> STRING", about="What a parameter of an address stands for."),
    scalar("URL_ENCODE_PARAM", e.url_encode, "STRING -> STRING", about="As a parameter of an address."),
    scalar("URL_EXTRACT_FRAGMENT", e.url_fragment, "STRING -> STRING", about="What stands behind #."),
    scalar("URL_EXTRACT_HOST", e.url_host, "STRING -> STRING", about="The host."),
    scalar("URL_EXTRACT_PARAMETER", e.url_parameter, "STRING, STRING -> STRING", about="The parameter of that name."),
    scalar("URL_EXTRACT_PATH", e.url_path, "STRING -> STRING", about="The path."),
    scalar("URL_EXTRACT_PORT", e.url_port, "STRING -> INT", about="The port."),
    scalar("URL_EXTRACT_PROTOCOL", e.url_protocol, "STRING -> STRING", about="What stands before the first colon."),
    scalar("URL_EXTRACT_QUERY", e.url_query, "STRING -> STRING", about="What stands behind ?."),
)
