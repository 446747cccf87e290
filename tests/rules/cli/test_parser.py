"""How a command line is read."""

import pytest

from ottla.cli.parser import Argument, Arguments, Command, HelpAsked, Option, UsageError, help_text, parse, usage

COMMAND = Command(
    "read",
    lambda _: 0,
    summary="Read things.",
    arguments=(Argument("TOPIC", help="What to read.", many=True, flags=("--topic",)),),
    options=(
        Option("--offset", "-o", value="OFFSET", default="start", help="Where to begin."),
        Option("--number", "-n", value="N", number=True, help="How many."),
        Option("--config", "-c", value="K=V", many=True, help="A setting."),
        Option("--codec", "-z", value="CODEC", choices=("none", "zstd"), help="Which."),
        Option("--exit", "-e", help="Stop."),
        Option("--quiet", "-q", help="No words."),
        Option("--old-name", help="Kept for old scripts.", hidden=True),
    ),
    examples=(("Read one", "ottla read orders"),),
)


def given(*words: str) -> Arguments:
    return parse(COMMAND, words)


def test_a_value_may_begin_with_a_dash() -> None:
    assert given("orders", "-o", "-10").text("offset") == "-10"
    assert given("orders", "--offset", "-10:end").text("offset") == "-10:end"


@pytest.mark.parametrize("words", [["-n", "5"], ["-n5"], ["-n=5"], ["--number", "5"], ["--number=5"]])
def test_a_value_is_given_in_any_of_the_usual_ways(words: list[str]) -> None:
    assert given("orders", *words).optional_number("number") == 5


def test_switches_run_together_and_end_with_an_option() -> None:
    arguments = given("-eqn5", "orders")
    assert (arguments.flag("exit"), arguments.flag("quiet"), arguments.number("number")) == (True, True, 5)


def test_options_stand_anywhere_and_what_follows_two_dashes_is_no_option() -> None:
    arguments = given("a", "-e", "b", "--", "-c", "--exit")
    assert arguments.texts("topic") == ["a", "b", "-c", "--exit"]


def test_kafkas_flag_for_an_argument_takes_a_list() -> None:
    assert given("--topic", "a,b", "c").texts("topic") == ["a", "b", "c"]


def test_what_may_be_repeated_is_collected_and_the_rest_is_refused() -> None:
    assert given("t", "-c", "a=1", "-c", "b=2").texts("config") == ["a=1", "b=2"]
    with pytest.raises(UsageError, match="-n is given twice"):
        given("t", "-n", "1", "-n", "2")


def test_defaults_apply_when_nothing_is_given() -> None:
    arguments = given("t")
    assert arguments.text("offset") == "start"
    assert arguments.optional("codec") is None
    assert not arguments.flag("exit")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "TOPIC is missing: What to read."),
        (["t", "--ofset", "1"], "--ofset is not an option of this command; did you mean --offset"),
        (["t", "-x"], "-x is not an option"),
        (["t", "-n"], "-n needs a value: -n N"),
        (["t", "-n", "many"], "-n many: a whole number is expected"),
        (["t", "-z", "rar"], "-z rar: choose one of none, zstd"),
        (["t", "--exit=1"], "--exit is a switch and takes no value"),
    ],
)
def test_mistakes_are_named_with_the_way_out(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        given(*words)


def test_one_word_too_many_is_told() -> None:
    command = Command("x", lambda _: 0, summary="", arguments=(Argument("FILE", help="A file.", required=False),))
    with pytest.raises(UsageError, match="'b' is one word too many"):
        parse(command, ["a", "b"])


def test_help_is_asked_for_anywhere() -> None:
    with pytest.raises(HelpAsked):
        given("t", "-e", "--help")


def test_help_teaches_by_example_and_lists_all_but_old_names() -> None:
    assert usage("read", COMMAND) == "ottla read TOPIC... [options]"
    text = help_text("read", COMMAND)
    assert text.index("examples:\n  # Read one\n  ottla read orders") < text.index("options:")
    assert "-o, --offset OFFSET  Where to begin. Default: start." in text
    assert "--old-name" not in text
