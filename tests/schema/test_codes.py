"""Every error and warning of the schema language: its code, its place, its message and its hint.

In the sources of the cases, the place is marked with « and ».
"""

from __future__ import annotations

import pytest

from omnigraph.diagnostics import Severity
from omnigraph.errors import SchemaError
from omnigraph.schema.codes import SCHEMA_CODES
from omnigraph.schema.compiler.compile import check_schema, compile_schema
from omnigraph.schema.limits import MAX_DIAGNOSTICS, MAX_SOURCE_LENGTH
from omnigraph.schema.syntax.parse import parse_schema
from tests.schema.cases_of_form import FORM
from tests.schema.cases_of_meaning import MEANING, OLD, RENAMES, WARNINGS


def marked(text: str) -> tuple[str, int, int]:
    """The source without its marks, and the offsets they stood at."""
    start = text.index("«")
    end = text.index("»") - 1
    return text.replace("«", "").replace("»", ""), start, end


def place(source: str, offset: int) -> tuple[int, int]:
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


@pytest.mark.parametrize(("code", "text", "message", "hint"), FORM + MEANING)
def test_an_error_has_code_place_message_and_hint(code: str, text: str, message: str, hint: str | None) -> None:
    source, start, end = marked(text)
    with pytest.raises(SchemaError) as caught:
        compile_schema(source)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.hint) == (code, message, hint)
    assert (found.span.start, found.span.end) == (start, end)
    assert (found.span.line, found.span.column) == place(source, start)
    assert found.severity is Severity.ERROR


@pytest.mark.parametrize(("code", "text", "message", "hint"), RENAMES)
def test_a_wrong_rename_has_code_place_message_and_hint(code: str, text: str, message: str, hint: str) -> None:
    source, start, end = marked(text)
    with pytest.raises(SchemaError) as caught:
        compile_schema(source, compile_schema(OLD))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.hint) == (code, message, hint)
    assert (found.span.start, found.span.end) == (start, end)


@pytest.mark.parametrize(("code", "text", "message", "hint"), WARNINGS)
def test_a_warning_does_not_fail(code: str, text: str, message: str, hint: str | None) -> None:
    source, start, end = marked(text)
    checked = check_schema(source, compile_schema(OLD))
    (found,) = checked.diagnostics
    assert checked.catalog is not None
    assert (found.code, found.message, found.hint) == (code, message, hint)
    assert (found.span.start, found.span.end) == (start, end)
    assert found.severity is Severity.WARNING


def test_S106_a_source_that_is_too_long_is_refused() -> None:
    with pytest.raises(SchemaError) as caught:
        compile_schema(" " * (MAX_SOURCE_LENGTH + 1))
    (found,) = caught.value.diagnostics
    assert (found.code, found.span.line, found.span.column) == ("S106", 1, 1)
    assert found.message == "the source has 400001 characters; at most 400000 are read"


def test_S106_names_have_a_length() -> None:
    for source in (f"node A{'a' * 255} {{ }}", f"node A {{ {'a' * 256}: I32 }}"):
        with pytest.raises(SchemaError) as caught:
            compile_schema(source)
        (found,) = caught.value.diagnostics
        assert (found.code, found.hint) == ("S106", "choose a shorter name")
        assert found.message == "this name has 256 characters; at most 255 are allowed"
    assert compile_schema(f"node A{'a' * 254} {{ {'a' * 255}: I32 }}").nodes


def test_S106_a_type_cannot_have_properties_without_end() -> None:
    properties = " ".join(f"p{index}: I32" for index in range(4096))
    compile_schema(f"interface I {{ {properties} }} node A implements I {{ }}")
    with pytest.raises(SchemaError) as caught:
        compile_schema(f"interface I {{ {properties} }}\nnode Big implements I {{ more: I32 }}")
    (found,) = caught.value.diagnostics
    assert (found.code, found.span.line, found.span.column) == ("S106", 2, 6)
    assert found.message == "`Big` has 4097 properties; at most 4096 are allowed"


def test_S106_interfaces_cannot_multiply_properties_without_end() -> None:
    properties = " ".join(f"p{index}: I32" for index in range(1001))
    nodes = "\n".join(f"node A{index} implements I {{ }}" for index in range(1000))
    with pytest.raises(SchemaError) as caught:
        compile_schema(f"interface I {{ {properties} }}\n{nodes}")
    (found,) = caught.value.diagnostics
    assert (found.code, found.span.line) == ("S106", 101)
    assert found.message == "up to `A99` the types have more than 100000 properties together"


def test_warnings_never_push_errors_out() -> None:
    many = " ".join(f"p{index}: [I32] @index" for index in range(1500))
    with pytest.raises(SchemaError) as caught:
        compile_schema(f"node A {{ {many} last: Foo }}")
    assert caught.value.codes == ("S120",)


def test_S107_types_nested_beyond_measure_are_refused_while_parsing() -> None:
    source, start, end = marked(f"node A {{ a: {'[' * 16}«{'[' * 9}I32{']' * 9}»{']' * 16} }}")
    with pytest.raises(SchemaError) as caught:
        parse_schema(source)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("S107", "types are nested more than 16 deep")
    assert (found.span.start, found.span.end, found.hint) == (start, end, "a list holds scalars")


def test_S108_more_errors_than_can_be_read_are_counted() -> None:
    source = "\n".join(f"node a{index} {{ }}" for index in range(250))
    with pytest.raises(SchemaError) as caught:
        compile_schema(source)
    found = caught.value.diagnostics
    assert len(found) == MAX_DIAGNOSTICS
    assert set(caught.value.codes[:-1]) == {"S110"}
    assert (found[-1].code, found[-1].message, found[-1].span.line) == (
        "S108",
        "there are more errors; they are not shown",
        100,
    )


def test_every_code_has_a_test() -> None:
    tested = {case[0] for case in (*FORM, *MEANING, *RENAMES, *WARNINGS)} | {"S106", "S107", "S108"}
    assert tested == set(SCHEMA_CODES)
