"""Paths are matched by their raw parts."""

from ottla.http.call import Call
from ottla.http.routes import Route, Routes


async def nothing(call: Call) -> None: ...


def routes(*rows: str) -> Routes:
    said = (row.split(" ", 1) for row in rows)
    return Routes(Route(method, path, nothing, "") for method, path in said)


def at(table: Routes, method: str, path: str) -> tuple[str, dict[str, str]] | None:
    found = table.found(path).get(method)
    return None if found is None else (found[0].path, found[1])


def test_a_named_part_takes_whatever_stands_there_unquoted_by_itself() -> None:
    table = routes("GET /subjects/{subject}/versions/{version}")
    assert at(table, "GET", "/subjects/a%2Fb%20c/versions/1") == (
        "/subjects/{subject}/versions/{version}",
        {"subject": "a/b c", "version": "1"},
    )


def test_a_fixed_part_goes_before_a_named_one() -> None:
    table = routes("GET /connectors/{name}", "GET /connectors/all", "GET /connectors/{name}/status")
    assert at(table, "GET", "/connectors/all") == ("/connectors/all", {})
    assert at(table, "GET", "/connectors/all/status") == ("/connectors/{name}/status", {"name": "all"})


def test_routes_with_one_path_may_name_its_parts_each_in_its_own_way() -> None:
    table = routes("GET /a/{x}", "DELETE /a/{y}")
    assert at(table, "GET", "/a/1") == ("/a/{x}", {"x": "1"})
    assert at(table, "DELETE", "/a/1") == ("/a/{y}", {"y": "1"})


def test_a_slash_at_the_end_means_nothing_and_an_unknown_path_has_no_methods() -> None:
    table = routes("GET /", "GET /subjects")
    assert at(table, "GET", "/subjects/") == ("/subjects", {})
    assert at(table, "GET", "/") == ("/", {})
    assert table.found("/subject") == {}
    assert table.found("/subjects/x") == {}
