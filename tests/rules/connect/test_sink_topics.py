"""Which topics a sink reads: a list of names, or Java's regular expression."""

import pytest

from ottla.connect.jobs.sink_query import topics_pattern
from ottla.connect.providers import Providers
from ottla.connect.spi import ConfigRefused
from ottla.pipelines.source.options import matching


@pytest.mark.parametrize(
    ("config", "topic", "is_read"),
    [
        ({"topics": "a.b, c"}, "a.b", True),
        ({"topics": "a.b, c"}, "axb", False),
        ({"topics.regex": "(?<first>a+)-(?!x).*"}, "aa-y", True),
        ({"topics.regex": "(?<first>a+)-(?!x).*"}, "aa-x", False),
        ({"topics.regex": "(a+)+"}, "a" * 40 + "!", False),
    ],
)
def test_a_topic_is_read_if_all_of_its_name_matches(config: dict[str, str], topic: str, is_read: bool) -> None:
    assert (matching(topics_pattern(config)).fullmatch(topic) is not None) is is_read


@pytest.mark.parametrize("regex", ["(", "(?!x)(a+)+"])
def test_what_is_no_expression_or_never_comes_to_an_end_is_refused(regex: str) -> None:
    with pytest.raises(ConfigRefused, match="is no regular expression"):
        topics_pattern({"topics.regex": regex})


def test_names_of_the_environment_are_allowed_by_an_expression_of_the_same_kind() -> None:
    given = {
        "config.providers": "env",
        "config.providers.env.class": "EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "(a+)+",
    }
    value = f"${{env:{'a' * 40}!}}"
    assert Providers(given).resolve({"a": value}) == {"a": value}
