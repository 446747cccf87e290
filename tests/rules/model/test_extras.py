"""What is said of libraries that are not installed."""

from ottla.model.extras import missing


def test_a_library_that_is_missing_is_named_with_the_way_to_have_it() -> None:
    said = missing(ModuleNotFoundError("No module named 'pyarrow.lib'", name="pyarrow.lib"))
    assert said == (
        "pyarrow is not installed: make streams in a clone of ottla, or pip install 'ottla[streams,connect,sql]'"
    )


def test_a_module_of_our_own_that_is_missing_is_a_defect_and_told_as_it_is() -> None:
    assert missing(ModuleNotFoundError("No module named 'ottla.x'", name="ottla.x")) == "No module named 'ottla.x'"
    assert missing(ImportError("cannot import name 'y'")) == "cannot import name 'y'"
