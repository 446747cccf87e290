"""The feed stands on a class of Spark's that is not public: one that does not have it is refused by name."""

from typing import Any

import pytest

from ottla.connect.jobs.feed import Feed
from ottla.pipelines.job import CannotStart


class Packages:
    """As py4j answers for names that no class has: a package, however deep."""

    def __getattr__(self, name: str) -> "Packages":
        return Packages()


class Session:
    """Of a Spark to come."""

    version = "5.0.0"
    _jsparkSession = None

    class sparkContext:
        _jvm = Packages()


def test_a_spark_without_the_class_is_refused_with_its_version_and_what_to_do() -> None:
    other: Any = Session()
    with pytest.raises(CannotStart, match=r"this is Spark 5\.0\.0, .*install pyspark 4\.3"):
        Feed(other)
