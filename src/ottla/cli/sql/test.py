"""`ottla sql test`: query tests in files, told one by one."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from typing import Final

from ottla.cli.failures import Failure
from ottla.cli.files import text_of
from ottla.cli.parser import Arguments

OK: Final = 0
FAILED: Final = 1


def test(arguments: Arguments) -> int:
    from ottla.sql.test_files import TestFileError, load

    engine = arguments.optional("engine") or "driver"
    passed = failed = 0
    for path in arguments.texts("file"):
        try:
            tests = load(text_of(path), path)
        except TestFileError as error:
            raise Failure(str(error)) from None
        for each in tests:
            wrong = each.failures(engine)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"FAILED {path}: {each.name}")
                print("".join(f"  {line}\n" for line in wrong), end="")
    print(f"{passed} passed, {failed} failed")
    return FAILED if failed else OK
