"""What is said of libraries that are not installed."""

import pytest

from ottla.model.extras import missing, named


def test_a_library_that_is_missing_is_named_with_the_way_to_have_it() -> None:
    assert missing(ModuleNotFoundError("No module named 'pyarrow.lib'", name="pyarrow.lib")) == (
        "pyarrow is not installed: pip install 'ottla[streams]' (in a clone of ottla: make streams)"
    )
    assert missing(ModuleNotFoundError("No module named 'google'", name="google.protobuf")) == (
        "protobuf is not installed: pip install 'ottla[registry]' (in a clone of ottla: make setup)"
    )


def test_what_no_extra_brings_is_told_as_python_tells_it() -> None:
    for name in ("ottla.x", "mine"):
        told = f"No module named '{name}'"
        assert missing(ModuleNotFoundError(told, name=name)) == told
    assert missing(ImportError("cannot import name 'y'")) == "cannot import name 'y'"


def test_whoever_imports_what_is_missing_is_told_so_with_its_name() -> None:
    with pytest.raises(ModuleNotFoundError) as raised, named():
        raise ModuleNotFoundError("No module named 'jwt'", name="jwt")
    assert raised.value.name == "jwt"
    assert "ottla[security]" in str(raised.value)
