"""The formatter of `.gq`: one layout for everybody, comments kept, formatting twice changes nothing.

Order stays as it is written. A comment stays before the item it stands before, or behind the item on its line; one in
the middle of an item moves before it. Blank lines between items stay, one at most. A block that fits on a line and
holds no comment is written on one.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from omnigraph.diagnostics import Span
from omnigraph.errors import InternalError
from omnigraph.query.text import syntax
from omnigraph.query.text.parse import parse_queries
from omnigraph.query.text.print import (
    annotation_text,
    bind_head,
    expression_text,
    header_text,
    order_text,
    parameter_text,
    projection_text,
    target_text,
    traversal_text,
    value_text,
)
from omnigraph.schema.source import comments_of

INDENT = "  "
WIDTH = 100


def format_queries(source: str, filename: str = "<query>") -> str:
    """The same queries in the standard layout. Raises `QueryParseError` if the text does not parse."""
    file = parse_queries(source, filename)
    text = _Layout(file).text()
    if parse_queries(text, filename) != file:
        raise InternalError("formatting changed what the queries say; nothing was changed")
    return text


@dataclass(frozen=True, slots=True)
class _Item:
    """Something that stands on lines of its own: where it stands, its text on one line, how to write it on several.

    `comma`: what follows would be read as a part of it without one.
    """

    span: Span
    line: str
    spread: Callable[[str, str], None] | None = None
    comma: bool = False


class _Layout:
    """Writes queries and comments in the order of the source."""

    def __init__(self, file: syntax.QueryFile) -> None:
        self._source = file.source
        self._file = file
        self._comments = list(comments_of(file.source))
        self._starts = [comment.start for comment in self._comments]
        self._parameters: set[str] = set()
        self._next = 0
        self._lines: list[str] = []

    def text(self) -> str:
        """The formatted text."""
        end: int | None = None
        for query in self._file.queries:
            head_end = query.name.span.end
            last = self._leading(head_end, "", end)
            if last is not None and (last == end or self._blank(last, query.span.start)):
                self._lines.append("")
            self._query(query)
            end = self._trailing(query.span.end)
        self._leading(len(self._source), "", end)
        return "\n".join(self._lines) + "\n"

    # --- queries

    def _query(self, query: syntax.Query) -> None:
        self._parameters = {parameter.variable.name for parameter in query.parameters}
        head = header_text(query)
        parameters_end = query.parameters[-1].span.end if query.parameters else query.name.span.end
        if query.parameters and (len(head) > WIDTH or self._has_comment(parameters_end)):
            self._lines.append(f"query {query.name.text}(")
            items = [_Item(each.span, parameter_text(each)) for each in query.parameters]
            self._items(items, INDENT, parameters_end, separator=",")
            self._lines.append(")")
        else:
            self._lines.append(head)
        for annotation in query.annotations:
            self._leading(annotation.span.end, INDENT, None)
            self._lines.append(INDENT + annotation_text(annotation))
        body = query.body
        start = body.span.start
        header_end = query.annotations[-1].span.end if query.annotations else parameters_end
        self._lines[-1] += " {"
        self._behind_brace(self._brace_after(header_end), start)
        if isinstance(body, syntax.Read):
            self._read(body, query.span.end)
        else:
            items = [self._statement(statement) for statement in body.statements]
            if body.clauses is not None and body.match_span is not None:
                items.insert(0, self._match(body.clauses, body.match_span))
            self._items(items, INDENT, query.span.end)
        self._lines.append("}")

    def _read(self, read: syntax.Read, query_end: int) -> None:
        blocks = [self._match(read.clauses, read.match_span)]
        for stage in read.stages:
            blocks.extend(self._stage(stage))
        keyword = "return distinct" if read.distinct else "return"
        blocks.append(self._block(keyword, read.return_span, [_projection(each) for each in read.projections], ","))
        if read.having_span is not None:
            conditions = [_Item(each.span, expression_text(each)) for each in read.having]
            blocks.append(self._block("having", read.having_span, conditions, ","))
        if read.order_span is not None:
            blocks.append(self._block("order", read.order_span, [_order_key(each) for each in read.order], ","))
        blocks.extend(_limits(read.limit, read.offset))
        self._items(blocks, INDENT, query_end)

    def _match(self, clauses: Sequence[syntax.Clause], span: Span) -> _Item:
        return self._block("match", span, self._clauses(clauses), "")

    def _stage(self, stage: syntax.Stage) -> list[_Item]:
        keyword = "with distinct" if stage.distinct else "with"
        items = [self._block(keyword, stage.with_span, [_projection(each) for each in stage.projections], ",")]
        if stage.where is not None:
            items.append(_Item(stage.where.span, f"where {expression_text(stage.where)}"))
        if stage.order_span is not None:
            items.append(self._block("order", stage.order_span, [_order_key(each) for each in stage.order], ","))
        items.extend(_limits(stage.limit, stage.offset))
        items.append(self._match(stage.clauses, stage.match_span))
        return items

    def _block(self, keyword: str, span: Span, items: Sequence[_Item], separator: str) -> _Item:
        inline = f"{separator} ".join(item.line for item in items)
        line = f"{keyword} {{ {inline} }}" if items else f"{keyword} {{ }}"
        if keyword == "match" and items:
            line = ""
        return _Item(span, line, self._spreader(f"{keyword} {{", span, items, separator))

    def _spreader(
        self, head: str, span: Span, items: Sequence[_Item], separator: str, tail: str = "}"
    ) -> Callable[[str, str], None]:
        def spread(indent: str, suffix: str) -> None:
            self._lines.append(indent + head)
            self._behind_brace(self._brace_after(span.start), items[0].span.start if items else span.end)
            self._items(items, indent + INDENT, span.end, separator=separator)
            self._lines.append(f"{indent}{tail}{suffix}")

        return spread

    # --- items

    def _clauses(self, clauses: Sequence[syntax.Clause]) -> list[_Item]:
        """The clauses of a block; a comma keeps one apart from the next where that starts with a sign."""
        items = [self._clause(clause) for clause in clauses]
        following = [*(item.line[:1] for item in items[1:]), ""]
        return [replace(item, comma=start in ("-", "(", "[")) for item, start in zip(items, following, strict=False)]

    def _clause(self, clause: syntax.Clause) -> _Item:
        match clause:
            case syntax.Bind():
                return self._with_properties(bind_head(clause), clause.span, clause.body_span, clause.properties, "")
            case syntax.Traversal():
                return _Item(clause.span, traversal_text(clause))
            case syntax.FilterClause(expression):
                # A comma keeps a lone variable apart from the clause that follows it; a parameter needs none.
                lone = isinstance(expression, syntax.Variable) and expression.name not in self._parameters
                comma = "," if lone else ""
                return _Item(clause.span, expression_text(expression) + comma)
            case syntax.NotBlock():
                return self._nested("not", clause.clauses, clause.span)
            case syntax.ExistsBlock():
                return self._nested("exists", clause.clauses, clause.span)
            case syntax.OptionalBlock():
                return self._nested("optional", clause.clauses, clause.span)
            case syntax.EitherBlock():
                return self._either(clause)

    def _nested(self, keyword: str, clauses: Sequence[syntax.Clause], span: Span) -> _Item:
        items = self._clauses(clauses)
        line = f"{keyword} {{ }}" if not items else f"{keyword} {{ {items[0].line} }}" if len(items) == 1 else ""
        if items and not items[0].line:
            line = ""
        return _Item(span, line, self._spreader(f"{keyword} {{", span, items, ""))

    def _either(self, either: syntax.EitherBlock) -> _Item:
        arms = [self._clauses(arm.clauses) for arm in either.arms]

        def spread(indent: str, suffix: str) -> None:
            for index, (arm, items) in enumerate(zip(either.arms, arms, strict=True)):
                if index:
                    self._lines[-1] += " or {"
                else:
                    self._leading(arm.span.start, indent, None)
                    self._lines.append(f"{indent}either {{")
                self._behind_brace(arm.span.start, items[0].span.start if items else arm.span.end)
                self._items(items, indent + INDENT, arm.span.end)
                self._lines.append(f"{indent}}}")
            self._lines[-1] += suffix

        lines = [items[0].line if len(items) == 1 else "" for items in arms]
        line = f"either {{ {' } or { '.join(lines)} }}" if all(lines) else ""
        return _Item(either.span, line, spread)

    def _statement(self, statement: syntax.Statement) -> _Item:
        match statement:
            case syntax.Insert():
                head = f"insert {'new ' if statement.new else ''}{statement.type.text}"
                return self._with_properties(
                    head, statement.span, statement.body_span, statement.assignments, "", braces=True
                )
            case syntax.InsertRows():
                new = "new " if statement.new else ""
                return _Item(statement.span, f"insert {new}{statement.type.text} from ${statement.rows.name}")
            case syntax.Update():
                head, where = f"update {target_text(statement.type)} set", _where(statement.predicate)
                return self._with_properties(
                    head, statement.span, statement.body_span, statement.assignments, where, braces=True
                )
            case syntax.Delete():
                return _Item(statement.span, f"delete {target_text(statement.type)}{_where(statement.predicate)}")

    def _with_properties(
        self,
        head: str,
        span: Span,
        body: Span | None,
        values: Sequence[syntax.PropertyValue],
        tail: str,
        *,
        braces: bool = False,
    ) -> _Item:
        """`head { p: v, … } tail`; without braces when there are no values, unless they are needed."""
        if body is None or not values:
            return _Item(span, head + (" { }" if braces else "") + tail)
        items = [_Item(value.span, value_text(value)) for value in values]
        line = f"{head} {{ {', '.join(item.line for item in items)} }}{tail}"
        if tail and self._has_comment(span.end, body.end):
            return _Item(span, line)
        return _Item(span, line, self._spreader(f"{head} {{", body, items, ",", f"}}{tail}"))

    def _items(self, items: Sequence[_Item], indent: str, end_of_block: int, separator: str = "") -> None:
        """Write items on lines of their own, and the comments among them up to the end of the block."""
        end: int | None = None
        for index, item in enumerate(items):
            suffix = (separator or ("," if item.comma else "")) if index < len(items) - 1 else ""
            spread = item.spread if self._needs_lines(item, indent, suffix) else None
            end = self._leading(item.span.start if spread else item.span.end, indent, end)
            if end is not None and self._blank(end, item.span.start):
                self._lines.append("")
            if spread is not None:
                spread(indent, suffix)
            else:
                self._lines.append(indent + item.line + suffix)
            end = self._trailing(item.span.end)
        self._leading(end_of_block, indent, end)

    def _needs_lines(self, item: _Item, indent: str, suffix: str) -> bool:
        if not item.line or len(indent) + len(item.line) + len(suffix) > WIDTH:
            return True
        return self._has_comment(item.span.end, item.span.start)

    # --- comments

    def _has_comment(self, before: int, after: int = 0) -> bool:
        """Whether there is a comment that is not yet written in this stretch."""
        first = max(self._next, bisect_left(self._starts, after))
        return first < len(self._starts) and self._starts[first] < before

    def _leading(self, before: int, indent: str, end: int | None) -> int | None:
        """Write the comments that start before an offset, on lines of their own. Gives where the last thing ended."""
        while self._next < len(self._comments) and self._comments[self._next].start < before:
            comment = self._comments[self._next]
            self._next += 1
            if end is not None and self._blank(end, comment.start):
                self._lines.append("")
            self._lines.append(indent + _comment_text(comment.text))
            end = comment.end
        return end

    def _trailing(self, end: int) -> int:
        """Write the comments that follow on the same line, behind what was written last."""
        while self._next < len(self._comments):
            comment = self._comments[self._next]
            between = self._source[end : comment.start]
            if not re.fullmatch(r"(?:[^\S\n]|[),])*", between) or "\n" in comment.text:
                break
            self._next += 1
            self._lines[-1] += f"  {_comment_text(comment.text)}"
            end = comment.end
        return end

    def _brace_after(self, offset: int) -> int:
        """Where the next opening brace stands that is not in a comment."""
        while True:
            brace = self._source.index("{", offset)
            before = bisect_right(self._starts, brace) - 1
            if before < 0 or self._comments[before].end <= brace:
                return brace
            offset = self._comments[before].end

    def _behind_brace(self, brace: int, before: int) -> None:
        """Write a line comment that follows an opening brace on its line, behind the brace."""
        if self._next >= len(self._comments):
            return
        comment = self._comments[self._next]
        between = self._source[brace : comment.start]
        if brace < comment.start < before and "\n" not in between and comment.text.startswith("//"):
            self._next += 1
            self._lines[-1] += f"  {_comment_text(comment.text)}"

    def _blank(self, end: int, start: int) -> bool:
        return self._source.count("\n", end, start) > 1


def _where(predicate: syntax.Expression | None) -> str:
    return "" if predicate is None else f" where {expression_text(predicate)}"


def _limits(limit: syntax.Expression | None, offset: syntax.Expression | None) -> list[_Item]:
    """`limit` and `offset`, in the order of the text."""
    items = [
        _Item(value.span, f"{keyword} {expression_text(value)}")
        for keyword, value in (("limit", limit), ("offset", offset))
        if value is not None
    ]
    return sorted(items, key=lambda item: item.span.start)


def _projection(projection: syntax.Projection) -> _Item:
    return _Item(projection.span, projection_text(projection))


def _order_key(key: syntax.OrderKey) -> _Item:
    return _Item(key.span, order_text(key))


def _comment_text(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").split("\n"))
