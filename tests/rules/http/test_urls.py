import pytest

from ottla.http.urls import service_url


def test_an_address_of_a_service_has_a_host_and_perhaps_the_rest() -> None:
    parts = service_url("https://al:x@[::1]:8083/base", "worker")
    assert (parts.hostname, parts.port, parts.path, parts.username) == ("::1", 8083, "/base", "al")
    assert service_url("http://here", "worker").port is None


@pytest.mark.parametrize(
    "url",
    ["ftp://x", "x", "http://", "http://a:99999", "http://a:0", "http://a:b", "http://[::1", "http://a..b:1"],
)
def test_what_can_be_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is no registry's address: http://HOST:PORT or https://HOST:PORT is expected"):
        service_url(url, "registry")


def test_a_refused_address_does_not_show_its_password() -> None:
    with pytest.raises(ValueError, match="'http://a:99999' is no") as refused:
        service_url("http://al:secret@a:99999", "registry")
    assert "secret" not in str(refused.value)
