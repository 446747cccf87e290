"""Writes docs/EXPRESSIONS.md from the declarations of functions. With --check it only says whether it is up to date."""

import sys
from pathlib import Path
from types import ModuleType

from ottla.streams.expressions.bound import FUNCTIONS, Declaration
from ottla.streams.expressions.functions import FAMILIES

PAGE = Path(__file__).parents[1] / "docs" / "EXPRESSIONS.md"

INTRODUCTION = """\
# Functions of expressions

<!-- Written by tools/generate_expressions_page.py from src/ottla/streams/expressions/functions; change those. -->

What an expression can say of a record ([STREAMS.md](STREAMS.md) tells what expressions are for):

```python
from ottla.streams.expressions import initcap, transform, value

value["name"].initcap()  # a function is a method of its first argument too
initcap(value["name"])
transform(value["prices"], lambda price: price * 2)  # called once, with an expression
```

Constants stand for themselves, lists for arrays, dicts for structs. A name that Python has already ends with `_` as a
function: `filter_(value["prices"], lambda price: price > 0)`, which as a method is `value["prices"].filter(...)`.

**Nulls**: what a null among the arguments gives. What has no answer (a text that is no number, a place that is not
there) is null as well and never ends a query. **Spark**: N is a column of Spark, which never leaves the JVM. P is
computed by Python, and so is the stage that it stands in, as `ottla streams explain` tells. N, P: it depends on the
arguments, for instance on whether a pattern is the same for all records. Both give the same, to the last digit but
where ~ stands: Java and C compute sines each in its own way.

Python makes texts of 16 Mi characters and arrays of a million items at most, and all lambdas inside of one call have
four million steps (one is a call, or four characters or two items that it gives): what takes more is null. Columns of
Spark have no such limits.
"""


def page() -> str:
    return INTRODUCTION + "".join(map(_chapter, FAMILIES))


def _chapter(family: ModuleType) -> str:
    name = family.__name__.rpartition(".")[2]
    rows = [_row(each) for each in FUNCTIONS.values() if each.family == name]
    about = (family.__doc__ or "").strip()
    head = "| Function | | Nulls | Spark |\n| --- | --- | --- | --- |\n"
    return f"\n## {name.capitalize()}\n\n{about}\n\n{head}{''.join(rows)}"


def _row(each: Declaration) -> str:
    call = f"{each.name}({each.parameters})".replace("|", "\\|")
    about = each.about.replace("|", "\\|")
    return f"| `{call}` | {about} | {each.nulls} | {_mode(each)} |\n"


def _mode(each: Declaration) -> str:
    mode = "P" if each.column is None else "N" if each.no_column is None else "N, P"
    return mode if each.exact else f"{mode} ~"


def main() -> int:
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is out of date: run python {Path(__file__).name}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
