"""Expressions as a reader would write them: for `explain`, and for errors that name the part that is wrong."""

from typing import TYPE_CHECKING, Final

from ottla.serdes.types import Type

if TYPE_CHECKING:
    from ottla.streams.expressions import Expression

_SYMBOLS: Final = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&", "or": "|",
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "not": "~", "negate": "-",
}  # fmt: skip


def text_of(part: "Expression") -> str:
    match part.function:
        case "leaf" | "headers":
            return str((*part.options, part.function)[0])
        case "variable":
            return variable_name(part.options[0])
        case "lambda":
            return f"lambda {', '.join(map(variable_name, part.options))}: {text_of(part.args[0])}"
        case "lit":
            return repr(part.options[0])
        case "header":
            return f"header({part.options[0]!r})"
        case "field" | "item":
            name = part.options[0]
            return f"{_operand(part.args[0])}[{_quoted(name) if isinstance(name, str) else name}]"
        case "case":
            return _case_text(part.args)
        case "struct":
            return f"struct({', '.join(f'{n}={text_of(a)}' for n, a in zip(part.options, part.args, strict=True))})"
        case "spark":
            name = getattr(part.options[0], "__name__", "function")
            return f"spark({', '.join([name, *map(text_of, part.args)])})"
    if part.function in _SYMBOLS:
        return _operator_text(_SYMBOLS[part.function], part.args)
    if not hasattr(type(part), part.function):
        return f"{part.function}({', '.join(map(text_of, part.args))})"
    options = [_option(option) for option in part.options if option is not None]
    return f"{_operand(part.args[0])}.{part.function}({', '.join([*map(text_of, part.args[1:]), *options])})"


def variable_name(variable: str) -> str:
    """A parameter of a lambda, without the depth that tells it from others."""
    return variable.partition("@")[0]


def _operator_text(symbol: str, args: "tuple[Expression, ...]") -> str:
    if len(args) == 1:
        return symbol + _operand(args[0])
    return f"{_operand(args[0])} {symbol} {_operand(args[1])}"


def _case_text(args: "tuple[Expression, ...]") -> str:
    pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
    text = ".".join(f"when({text_of(condition)}, {text_of(result)})" for condition, result in pairs)
    last = args[-1]
    return text if last.function == "lit" and last.options[0] is None else f"{text}.otherwise({text_of(last)})"


def _operand(part: "Expression") -> str:
    return f"({text_of(part)})" if part.function in _SYMBOLS else text_of(part)


def _option(option: object) -> str:
    pattern = getattr(option, "pattern", option)
    return (
        _quoted(pattern)
        if isinstance(pattern, str)
        else _quoted(str(option))
        if isinstance(option, Type)
        else repr(option)
    )


def _quoted(text: str) -> str:
    return f'"{text}"' if '"' not in text and "\\" not in text else repr(text)
