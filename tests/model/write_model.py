"""What writes mean, said a second time in plain dictionaries. It shares no code with the product, nor its words.

A graph is a dictionary from table to rows by id; a row is a dictionary of plain values, dates as ISO text. A write
gives the violations that it must be refused with, counted by kind and table, and the graph that it makes.
"""

from __future__ import annotations

import copy
import json
import math
import re
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from tests.differential.keys import float_text

Row = dict[str, Any]
Graph = dict[str, dict[str, Row]]
Found = Counter[tuple[str, str]]


class Disagree(Exception):
    """Two bindings of a match want different things of one row."""


class Bad(Exception):
    """A value that is not of the property's type. The text is the kind of the violation."""


@dataclass(frozen=True)
class Prop:
    type: str
    required: bool = False
    default: Any = None
    low: int | None = None
    high: int | None = None
    pattern: str | None = None
    values: tuple[str, ...] = ()
    dim: int = 0


@dataclass(frozen=True)
class Type:
    name: str
    props: dict[str, Prop]
    key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    ends: tuple[str, str] | None = None
    card: tuple[int, int | None] = (0, None)

    @property
    def table(self) -> str:
        return f"{'edge' if self.ends else 'node'}:{self.name}"


# --- values ------------------------------------------------------------------------------------------------------

_WHOLE = {"I32": (-(2**31), 2**31 - 1), "I64": (-(2**63), 2**63 - 1), "U32": (0, 2**32 - 1), "U64": (0, 2**64 - 1)}


def value_of(prop: Prop, given: Any) -> Any:
    """The value as it is stored; raises Bad."""
    if given is None:
        return None
    if prop.type.startswith("["):
        if not isinstance(given, list) or None in given:
            raise Bad("wrong_type")
        return [value_of(Prop(prop.type[1:-1]), item) for item in given]
    if prop.type == "Vector":
        if not isinstance(given, list):
            raise Bad("wrong_type")
        if len(given) != prop.dim:
            raise Bad("vector_dimension")
        if None in given:
            raise Bad("wrong_type")
        return [value_of(Prop("F32", required=True), item) for item in given]
    return _scalar(prop.type, given)


def _scalar(kind: str, given: Any) -> Any:
    if kind in ("String", "enum"):
        ok = isinstance(given, str)
    elif kind == "Bool":
        ok = isinstance(given, bool)
    elif kind in _WHOLE:
        if isinstance(given, str) and kind in ("I64", "U64") and re.fullmatch(r"0|-?[1-9][0-9]*", given):
            given = int(given)
        low, high = _WHOLE[kind]
        ok = isinstance(given, int) and not isinstance(given, bool) and low <= given <= high
    elif kind in ("F32", "F64"):
        return _float(kind, given)
    elif kind == "Date":
        ok = isinstance(given, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", given) is not None and _day(given)
    else:
        return _moment(given)
    if not ok:
        raise Bad("wrong_type")
    return given


def _float(kind: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise Bad("wrong_type")
    number = float(given)
    if kind == "F32" and math.isfinite(number):
        try:
            number = struct.unpack("<f", struct.pack("<f", number))[0]
        except OverflowError:
            raise Bad("wrong_type") from None
        if number == 0 and given != 0:
            raise Bad("wrong_type")
    if isinstance(given, int) and number != given:
        raise Bad("wrong_type")
    return number


def _day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _moment(given: Any) -> str:
    if not isinstance(given, str) or not re.fullmatch(r".*(Z|[+-]\d\d:\d\d)", given):
        raise Bad("wrong_type")
    main, dot, rest = given.partition(".")
    digits = re.match(r"\d*", rest).group() if dot else ""  # type: ignore[union-attr]
    if digits[6:].strip("0"):
        raise Bad("wrong_type")
    try:
        found = datetime.fromisoformat(main + (("." + digits[:6].ljust(6, "0")) if dot else "") + rest[len(digits) :])
        found = found.astimezone(__import__("datetime").UTC)
    except (ValueError, OverflowError):
        raise Bad("wrong_type") from None
    return found.replace(tzinfo=None).isoformat() + "Z"


def text_of(value: Any) -> str:
    """The text of one value of a key. Dates and moments are text already."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_text(value) if isinstance(value, float) else str(value)


def broken(prop: Prop, value: Any) -> list[str]:
    """The kinds of rule that one value breaks on its own; null breaks none here."""
    if value is None:
        return []
    found = []
    if prop.type == "enum" and value not in prop.values:
        found.append("enum")
    numbers = value if isinstance(value, list) else [value]
    if any(isinstance(n, float) and not math.isfinite(n) for n in numbers):
        found.append("not_finite")
    if (prop.low is not None and value < prop.low) or (prop.high is not None and value > prop.high):
        found.append("range")
    if prop.pattern is not None and not re.fullmatch(prop.pattern, value):
        found.append("check")
    return found


# --- loads -------------------------------------------------------------------------------------------------------


@dataclass
class Given:
    """One record as it was understood."""

    type: Type
    id: str | None
    row: Row
    named: set[str]
    failed: set[str] = field(default_factory=set)
    fresh: bool = False


class Model:
    """The schema, and what writes do to a graph of it."""

    def __init__(self, types: list[Type]) -> None:
        self.types = {t.table: t for t in types}

    def empty(self) -> Graph:
        return {table: {} for table in self.types}

    def load(self, graph: Graph, mode: str, records: list[Any]) -> tuple[Found, Graph]:
        """What a load of these records is refused with, or else the graph after it."""
        found: Found = Counter()
        rows = [given for number, record in enumerate(records) if (given := self._read(record, number, found))]
        for given in rows:
            self._check_alone(given, mode, found)
        after = self._merge(graph, rows, found) if mode == "merge" else self._add(graph, mode, rows, found)
        return found, after

    def _read(self, record: Any, number: int, found: Found) -> Given | None:
        if not isinstance(record, dict) or ("type" in record) == ("edge" in record):
            found["malformed_record", "record"] += 1
            return None
        kind = "node" if "type" in record else "edge"
        name = record["type" if kind == "node" else "edge"]
        type_ = self.types.get(f"{kind}:{name}")
        if type_ is None:
            found["unknown_type", "record"] += 1
            return None
        table = type_.table
        allowed = {"type", "id", "data"} if kind == "node" else {"edge", "from", "to", "id", "data"}
        if set(record) - allowed:
            found["malformed_record", table] += 1
        data = record.get("data")
        data = {} if data is None else data
        if not isinstance(data, dict):
            found["malformed_record", table] += 1
            return None
        if record.get("id") is not None and data.get("id") is not None:
            found["malformed_record", table] += 1
            return None
        id_ = record.get("id") if record.get("id") is not None else data.get("id")
        given = Given(type_, None, {}, {name for name in data if name in type_.props})
        given.id = self._id("id", id_, given, found)
        if type_.ends:
            for end, key in (("src", "from"), ("dst", "to")):
                given.row[end] = self._id(end, record.get(key), given, found)
                if record.get(key) is None:
                    found["missing_value", table] += 1
        for name, prop in type_.props.items():
            try:
                given.row[name] = value_of(prop, data.get(name))
            except Bad as kind_of:
                found[str(kind_of), table] += 1
                given.row[name] = None
                given.failed.add(name)
        found["unknown_property", table] += sum(1 for name in data if name not in type_.props and name != "id")
        if found["unknown_property", table] == 0:
            del found["unknown_property", table]
        return given

    def _id(self, what: str, value: Any, given: Given, found: Found) -> str | None:
        if value is None:
            return None
        own = {"src": 0, "dst": 1}.get(what)
        of = given.type if own is None else self.types[f"node:{given.type.ends[own]}"]  # type: ignore[index]
        text = self.taken(of, value)
        if text is None:
            found["wrong_type", given.type.table] += 1
            given.failed.add(what)
        return text

    def taken(self, of: Type, value: Any) -> str | None:
        """The id that a value stands for; None when it can be none: a key's text, its values, or an array of them."""
        kinds = [of.props[name].type for name in of.key if name in of.props]
        if of.ends:
            return value if isinstance(value, str) else str(value) if type(value) is int and not of.key else None
        if len(kinds) > 1:
            parts = value
            if isinstance(value, str):
                try:
                    parts = json.loads(value)
                except ValueError:
                    return value
            if not isinstance(parts, list) or len(parts) != len(kinds):
                return value if isinstance(value, str) else None
            texts = [self._part(kind, part) for kind, part in zip(kinds, parts)]
            return None if None in texts else json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
        return self._part(kinds[0] if kinds else "String", value)

    def _part(self, kind: str, value: Any) -> str | None:
        """One value of a key as the text that ids are made of. Text that is no such value stays as it is."""
        if kind == "F64":
            number = value
            if isinstance(value, str):
                try:
                    number = json.loads(value)
                except ValueError:
                    return value
            return text_of(float(number)) if type(number) in (int, float) and float(number) == number else None
        if isinstance(value, str):
            try:
                return _moment(value) if kind == "DateTime" else value
            except Bad:
                return value
        if kind == "Bool":
            return text_of(value) if isinstance(value, bool) else None
        return str(value) if type(value) is int and kind not in ("Date", "DateTime") else None

    def _check_alone(self, given: Given, mode: str, found: Found) -> None:
        type_, row = given.type, given.row
        for name, prop in type_.props.items():
            if mode != "merge" and name not in given.named and prop.default is not None:
                row[name] = prop.default
            if name in given.failed:
                continue
            if row[name] is None and name in type_.key:
                found["missing_key", type_.table] += 1
            elif row[name] is None and prop.required and (mode != "merge" or name in given.named):
                found["missing_value", type_.table] += 1
            for kind in broken(prop, row[name]):
                found[kind, type_.table] += 1
        if type_.key:
            derived = self.derived(type_, row)
            if given.id is not None and derived is not None and given.id != derived:
                found["key_not_canonical", type_.table] += 1
            given.id = derived

    def derived(self, type_: Type, row: Row) -> str | None:
        """The id that the key makes."""
        values = [row[name] for name in type_.key]
        if None in values:
            return None
        texts = [text_of(value) for value in values]
        if len(texts) == 1 and not type_.ends:
            return texts[0]
        return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))

    def _add(self, graph: Graph, mode: str, rows: list[Given], found: Found) -> Graph:
        after = copy.deepcopy(graph)
        named = {given.type.table for given in rows}
        if mode == "overwrite":
            for table in named:
                after[table] = {}
        stays = {table: list(after[table].values()) for table in after}
        incoming: dict[str, list[Given]] = {table: [g for g in rows if g.type.table == table] for table in named}
        fresh = 0
        for table, new in incoming.items():
            ids = [g.id for g in new if g.id is not None]
            found["duplicate_id", table] += len(ids) - len(set(ids))
            if mode == "append":
                found["existing_id", table] += sum(1 for id_ in ids if id_ in graph[table])
            for given in new:
                fresh += 1
                after[table][given.id if given.id is not None else f"?{fresh}"] = given.row
        for table, new in incoming.items():
            type_, added = self.types[table], [g.row for g in new]
            self._uniques(type_, added, stays[table], found)
            self._ends(type_, added, after, found)
            sources = {row["src"] for row in added} if type_.ends else set()
            self._cards(type_, sources, [*stays[table], *added], found)
        self._dangling(graph, after, named, found)
        return after

    def _uniques(self, type_: Type, new: list[Row], stays: list[Row], found: Found) -> None:
        for unique in type_.uniques:
            taken = {tuple(row[name] for name in unique) for row in stays}
            for row in new:
                values = tuple(row[name] for name in unique)
                if None in values:
                    continue
                if values in taken:
                    found["unique", type_.table] += 1
                taken.add(values)

    def _ends(self, type_: Type, new: list[Row], after: Graph, found: Found) -> None:
        if type_.ends is None:
            return
        for row in new:
            for end, node in zip(("src", "dst"), type_.ends):
                if row[end] is not None and row[end] not in after[f"node:{node}"]:
                    found["missing_endpoint", type_.table] += 1

    def _cards(self, type_: Type, touched: set[Any], rows: list[Row], found: Found) -> None:
        low, high = type_.card
        counts = Counter(row["src"] for row in rows) if type_.ends else Counter()
        for source in touched - {None}:
            if counts[source] and (counts[source] < low or (high is not None and counts[source] > high)):
                found["cardinality", type_.table] += 1

    def _dangling(self, graph: Graph, after: Graph, replaced: set[str], found: Found) -> None:
        for table, type_ in self.types.items():
            if type_.ends is None or table in replaced:
                continue
            for row in graph[table].values():
                for end, node in zip(("src", "dst"), type_.ends):
                    if f"node:{node}" in replaced and row[end] not in after[f"node:{node}"]:
                        found["dangling_edge", table] += 1

    def _merge(self, graph: Graph, rows: list[Given], found: Found) -> Graph:
        after = copy.deepcopy(graph)
        changed: dict[str, dict[str, Row]] = {}
        moved: dict[str, set[Any]] = {}
        for number, given in enumerate(rows):
            if given.id is None and not given.type.key:
                given.id = self._match(given, rows[:number], graph) or f"?{number}"
        for table, type_ in self.types.items():
            for id_ in dict.fromkeys(g.id for g in rows if g.type.table == table and g.id is not None):
                old = graph[table].get(id_)
                row = dict(old) if old is not None else {n: p.default for n, p in type_.props.items()}
                mine = [g for g in rows if g.type.table == table and g.id == id_]
                for given in mine:
                    row |= {
                        name: given.row[name] for name in given.row if name in given.named or name in ("src", "dst")
                    }
                named = set().union(*(g.named for g in mine))
                for name, prop in type_.props.items():
                    if prop.required and row[name] is None and name not in named and name not in type_.key:
                        found["missing_value", table] += 1
                if row != old:
                    changed.setdefault(table, {})[id_] = row
                    moved.setdefault(table, set()).update({r["src"] for r in (row, old) if r} if type_.ends else ())
                    after[table][id_] = row
        self._check_changed(graph, after, changed, {}, moved, found)
        return after

    def _match(self, given: Given, before: list[Given], graph: Graph) -> str | None:
        """The edge that a record without an id means: the one with the same first unique tuple."""
        type_ = given.type
        if not type_.ends or not type_.uniques:
            return None
        values = [given.row[name] for name in type_.uniques[0]]
        if None in values:
            return None
        for id_, row in graph[type_.table].items():
            if [row[name] for name in type_.uniques[0]] == values:
                return id_
        for other in before:
            if other.type is type_ and [other.row[name] for name in type_.uniques[0]] == values:
                return other.id
        return None

    def _check_changed(
        self,
        graph: Graph,
        after: Graph,
        changed: dict[str, dict[str, Row]],
        deleted: dict[str, set[str]],
        moved: dict[str, set[Any]],
        found: Found,
    ) -> None:
        for table, type_ in self.types.items():
            new = changed.get(table, {})
            gone = deleted.get(table, set())
            stays = [row for id_, row in graph[table].items() if id_ not in new and id_ not in gone]
            self._uniques(type_, list(new.values()), stays, found)
            self._ends(type_, list(new.values()), after, found)
            self._cards(type_, moved.get(table, set()), [*stays, *new.values()], found)

    # --- mutations -----------------------------------------------------------------------------------------------

    def mutate(self, graph: Graph, statements: list[Any]) -> tuple[Found, Graph, tuple[int, int]]:
        """Statements are tuples: see the cases. Raises Disagree."""
        found: Found = Counter()
        after = copy.deepcopy(graph)
        failed: set[tuple[str, str, str]] = set()
        for number, statement in enumerate(statements):
            match statement:
                case ("insert", table, values):
                    self._insert(after, table, values, f"?{number}", found)
                case ("insert new", table, values):
                    self._insert(after, table, values, f"?{number}", found, new=True)
                case ("insert rows", table, rows, new):
                    self._insert_rows(after, table, rows, new, number, found, failed)
                case ("update", table, values, where):
                    self._update(after, table, values, where)
                case ("delete", table, where):
                    self._delete(after, table, where)
                case ("insert each", table, rows):
                    self._insert_each(after, table, rows, number)
                case ("update each", table, changes):
                    self._update_each(after, table, changes)
                case ("delete each", table, ids):
                    self._delete(after, table, lambda id_, row, ids=ids: id_ in ids)
        changed = {
            table: {id_: row for id_, row in after[table].items() if graph[table].get(id_) != row} for table in after
        }
        deleted = {table: graph[table].keys() - after[table].keys() for table in after}
        for table, rows in changed.items():
            type_ = self.types[table]
            for id_, row in rows.items():
                for name, prop in type_.props.items():
                    if (table, id_, name) in failed:
                        continue
                    if row[name] is None and prop.required:
                        found["missing_value", table] += 1
                    for kind in broken(prop, row[name]):
                        found[kind, table] += 1
        moved = {
            table: {row["src"] for row in changed[table].values()}
            | {graph[table][id_]["src"] for id_ in deleted[table]}
            for table, type_ in self.types.items()
            if type_.ends
        }
        self._check_changed(graph, after, changed, deleted, moved, found)
        counts = [0, 0]
        for table, type_ in self.types.items():
            counts[1 if type_.ends else 0] += len(changed[table]) + len(deleted[table])
        return found, after, (counts[0], counts[1])

    def _insert_rows(
        self,
        after: Graph,
        table: str,
        rows: list[Row],
        new: bool,
        number: int,
        found: Found,
        failed: set[tuple[str, str, str]],
    ) -> None:
        type_ = self.types[table]
        for position, row in enumerate(rows):
            own = {"from": row.get("from"), "to": row.get("to")} if type_.ends else {}
            data = {name: value for name, value in row.items() if name not in own}
            kind = "edge" if type_.ends else "type"
            given = self._read({kind: type_.name, **own, "data": data}, position, found)
            assert given is not None
            must_be_new = new or (given.id is not None and not type_.key)
            if type_.key:
                derived = self.derived(type_, given.row)
                if given.id is not None and derived is not None and given.id != derived:
                    found["key_not_canonical", table] += 1
                given.id = derived
                if derived is None:
                    given.row = {**given.row}
                    self._check_alone(given, "merge", found)
                    continue
            id_ = given.id if given.id is not None else f"?{number}.{position}"
            if must_be_new and id_ in after[table]:
                found["existing_id", table] += 1
            old = after[table].get(id_) or {name: prop.default for name, prop in type_.props.items()}
            named = {name: given.row[name] for name in given.row if name in given.named or name in ("src", "dst")}
            after[table][id_] = {**old, **named}
            failed |= {(table, id_, name) for name in given.failed}

    def _insert_each(self, after: Graph, table: str, rows: list[Row], number: int) -> None:
        """Rows of the bindings of one statement: those of one key are one row, or they disagree."""
        type_ = self.types[table]
        made: dict[str, Row] = {}
        for position, row in enumerate(rows):
            id_ = self.derived(type_, row) if type_.key else f"?{number}.{position}"
            assert id_ is not None
            if made.setdefault(id_, row) != row:
                raise Disagree
        for id_, row in made.items():
            old = after[table].get(id_) or {name: prop.default for name, prop in type_.props.items()}
            after[table][id_] = {**old, **row}

    def _update_each(self, after: Graph, table: str, changes: list[tuple[str, Row]]) -> None:
        wanted: dict[str, Row] = {}
        for id_, values in changes:
            if id_ in after[table] and wanted.setdefault(id_, values) != values:
                raise Disagree
        for id_, values in wanted.items():
            after[table][id_] = {**after[table][id_], **values}

    def _insert(self, after: Graph, table: str, values: Row, fresh: str, found: Found, *, new: bool = False) -> None:
        type_ = self.types[table]
        given = {
            name: value_of(type_.props[name], value) if name in type_.props else value for name, value in values.items()
        }
        if type_.ends:
            for end, node in zip(("src", "dst"), type_.ends):
                given[end] = self.taken(self.types[f"node:{node}"], given[end])
        id_ = given.pop("id", None)
        if type_.key:
            id_ = self.derived(type_, given)
        if id_ in after[table] and (new or not type_.key):
            found["existing_id", table] += 1
        id_ = fresh if id_ is None else id_
        old = after[table].get(id_) or {name: prop.default for name, prop in type_.props.items()}
        after[table][id_] = {**old, **given}

    def _update(self, after: Graph, table: str, values: Row, where: Callable[[str, Row], bool]) -> None:
        for id_, row in after[table].items():
            if where(id_, row):
                row.update({name: value_of(self.types[table].props[name], value) for name, value in values.items()})

    def _delete(self, after: Graph, table: str, where: Callable[[str, Row], bool]) -> None:
        gone = {id_ for id_, row in after[table].items() if where(id_, row)}
        after[table] = {id_: row for id_, row in after[table].items() if id_ not in gone}
        for other, type_ in self.types.items():
            for end, node in zip(("src", "dst"), type_.ends or ()):
                if f"node:{node}" == table:
                    after[other] = {id_: row for id_, row in after[other].items() if row[end] not in gone}
