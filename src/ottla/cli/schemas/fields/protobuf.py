"""Fields of Protobuf messages, constants of enums, methods of services, out of a schema's text.

It reads what registries print (and what people write) word by word; it is no parser, and refuses nothing.
"""

import re
from collections.abc import Iterator
from typing import Final

_WORD: Final = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\w.+-]+|[^\s\w]""", re.DOTALL)
_BLOCKS: Final = frozenset(("message", "enum", "service", "oneof", "extend", "group"))


def protobuf_fields(text: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"": {}}
    blocks: list[tuple[str, str]] = []
    for words, ends_with in _statements(text):
        if ends_with == "}":
            if blocks:
                blocks.pop()
        elif ends_with == "{":
            blocks.append(_block(words, blocks, found))
        elif words:
            _tell(words, blocks, found)
    return found


def _statements(text: str) -> Iterator[tuple[list[str], str]]:
    """Words up to `;`, or to a brace that opens or closes a block (those of an option's value do not)."""
    words: list[str] = []
    in_value = 0
    for match in _WORD.finditer(text):
        word = match[0]
        if word.startswith(("//", "/*")):
            continue
        is_value = in_value > 0 or "[" in words or words[:1] == ["option"]
        if word == "{" and is_value:
            in_value += 1
        elif word == "}" and in_value:
            in_value -= 1
        elif word in ("{", "}") or (word == ";" and not in_value):
            yield words, word
            words = []
            continue
        words.append(word)
    if words:
        yield words, ";"


def _block(words: list[str], blocks: list[tuple[str, str]], found: dict[str, dict[str, str]]) -> tuple[str, str]:
    kind, name = (words[0], words[1]) if len(words) > 1 else ("", "")
    if kind not in _BLOCKS:  # rpc … { }, an option's value, or a group by its label
        _tell(words, blocks, found)
        return "", ""
    if kind not in ("oneof", "extend"):
        found.setdefault(".".join([*_messages(blocks), name]), {"type": kind})
    return kind, name


def _messages(blocks: list[tuple[str, str]]) -> list[str]:
    return [name for kind, name in blocks if kind not in ("oneof", "")]


def _tell(words: list[str], blocks: list[tuple[str, str]], found: dict[str, dict[str, str]]) -> None:
    path = _messages(blocks)
    first = words[0] if words else ""
    if "=" in words and first not in ("syntax", "edition", "option"):
        equals = words.index("=")
        name, number, options = words[equals - 1], words[equals + 1 : equals + 2], words[equals + 2 :]
        said = {"type": _joined(words[: equals - 1]) or "constant", "number": _joined(number)}
        if blocks and blocks[-1][0] == "oneof":
            said["oneof"] = blocks[-1][1]
        if options:
            said["options"] = _joined(options[1:-1])
        found[".".join([*path, name])] = said
    elif first == "rpc" and len(words) > 1:
        found[".".join([*path, words[1]])] = {"type": _joined(["rpc", *words[2:]])}
    elif first:
        about = found.setdefault(".".join(path), {})
        key = f"option {words[1]}" if first == "option" and len(words) > 1 else first
        value = _joined(words[1:]) if first != "option" else _joined(words[2:])
        value = value.removeprefix("= ")
        about[key] = f"{about[key]}; {value}" if key in about else value


def _joined(words: list[str]) -> str:
    text = " ".join(words)
    for mark in ("<", ">", ",", ")", "]"):
        text = text.replace(f" {mark}", mark)
    return text.replace("< ", "<").replace("( ", "(").replace("[ ", "[")
