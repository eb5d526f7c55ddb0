"""Every code of the query language: what raises it, where, and in which words."""

from __future__ import annotations

import pytest

from omnigraph.diagnostics import Severity
from omnigraph.errors import LanguageError, QueryParseError, QueryTypeError
from omnigraph.query.codes import MEANINGS
from omnigraph.query.lint import lint
from tests.query.sample import SCHEMA, compiled, unmarked

# Each case: the code, a query in which ⟦…⟧ marks the place, the message, and the hint.
CASES: list[tuple[str, str, str, str | None]] = [
    (
        "T1",
        "query q { match { $p: ⟦Persn⟧ } return { $p } }",
        "unknown node type `Persn`",
        "did you mean `Person`?",
    ),
    (
        "T1",
        "query q { match { $p: ⟦WorksAt⟧ } return { $p } }",
        "`WorksAt` is an edge type, not a node type",
        "an edge is bound in a traversal: `$a $w:worksAt $b`",
    ),
    (
        "T1",
        "query q { match { $p: ⟦Nmed⟧ } return { $p } }",
        "unknown node type `Nmed`",
        "did you mean `Named`?",
    ),
    (
        "T1",
        "query q($r: [⟦Persn⟧]) { match { } return { 1 as one } }",
        "unknown parameter type `Persn`",
        "did you mean `Person`?",
    ),
    (
        "T1",
        "query q($r: ⟦Person⟧) { match { } return { 1 as one } }",
        "unknown parameter type `Person`",
        "rows of it are `[Person]`",
    ),
    (
        "T1",
        "query q($n: ⟦Sting⟧) { match { $p: Person { name: $n } } return { $p } }",
        "unknown parameter type `Sting`",
        "did you mean `String`?",
    ),
    (
        "T2",
        "query q { match { $p: Person { ⟦nam⟧: 1 } } return { $p } }",
        "`Person` has no property `nam`",
        "did you mean `name`?",
    ),
    (
        "T2",
        "query q { match { $p: Person $p.⟦agee⟧ > 3 } return { $p } }",
        "`Person` has no property `agee`",
        "did you mean `age`?",
    ),
    (
        "T2",
        "query q { match { $p $w:knows $f } return { $w.⟦sinc⟧ } }",
        "`Knows` has no property `sinc`",
        "did you mean `since`?",
    ),
    (
        "T2",
        "query q { match { $n: Note $n $w:order|ranked $m } return { $w.⟦order⟧ } }",
        "`order` is not of one type in all of `Order|Ranked`",
        "ask for it in an `optional`, or an arm of an `either`, for each of these types",
    ),
    (
        "T2",
        "query q { match { $n: Note $n order|ranked{1,2}[⟦order⟧ > 3] $m } return { $m } }",
        "`order` is not of one type in all of `Order|Ranked`",
        "follow each of these types in an arm of an `either`, with a condition of its own",
    ),
    (
        "T3",
        'query q { match { $p: Person ⟦$p.tags⟧ = "x" } return { $p } }',
        "`=` compares single values, and this is a list",
        "use `contains` or `in`",
    ),
    (
        "T3",
        'query q { match { $p: Person "x" in ⟦$p.name⟧ } return { $p } }',
        "`in` needs a list on its right, and this is String",
        None,
    ),
    (
        "T3",
        'query q { match { $p: Person ⟦$p.photo⟧ = "x" } return { $p } }',
        "`=` does not apply to a blob; only `= null` and `!= null` do",
        None,
    ),
    (
        "T3",
        'query q { match { $p: Person { ⟦photo: "x"⟧ } } return { $p } }',
        "`photo` is a blob and cannot be matched by a value",
        None,
    ),
    (
        "T3",
        'query q { match { $p: Person { tags: ⟦["x"]⟧ } } return { $p } }',
        "`tags` is a list: an inline value asks for one member of it",
        None,
    ),
    (
        "T3",
        "query q { match { $p: Person $p.age in [⟦[1]⟧] } return { $p } }",
        "there are no lists of lists",
        None,
    ),
    (
        "T3",
        "query q { match { $p: Person } return { $p } order { ⟦$p.tags⟧ } }",
        "rows cannot be sorted by a list",
        None,
    ),
    (
        "T4",
        "query q { match { $p: Person $p ⟦knws⟧ $f } return { $p } }",
        "unknown edge type `knws`",
        "did you mean `knows`?",
    ),
    (
        "T5",
        "query q { match { $p: Person $c: Person $p worksAt ⟦$c⟧ } return { $p } }",
        "`$c` is a Person and cannot be the end of `worksAt` (Person -> Company)",
        None,
    ),
    (
        "T5",
        "query q { match { $c: Company $p: Person ⟦$c worksAt $p⟧ } return { $p } }",
        "`worksAt` goes from Person to Company, and this is the other way round",
        "write `$p worksAt $c`",
    ),
    (
        "T5",
        "query q { match { $p: Person ⟦$p⟧: Company } return { $p.name } }",
        "`$p` is a Person and cannot be bound as `Company`",
        None,
    ),
    (
        "T6",
        "query q { match { $p: Person ⟦$q⟧.age > 3 } return { $p } }",
        "`$q` is not bound in the match block",
        None,
    ),
    (
        "T6",
        "query q { match { $person: Person } return { ⟦$persn⟧ } }",
        "`$persn` is not bound in the match block",
        "did you mean `$person`?",
    ),
    (
        "T6",
        "query q { match { $p: Person } return { $p.name } order { ⟦nam⟧ } }",
        "`nam` is not an alias defined in the return block",
        "a property is written `$x.nam`",
    ),
    (
        "T6",
        "query q { match { $p: Person } return { ⟦b⟧ = 3 as a, $p.age as b } }",
        "`b` is not an alias defined earlier in this return",
        "a property is written `$x.b`",
    ),
    (
        "T6",
        "query q { match { $_: Person ⟦$_⟧.age > 3 } return { 1 as a } }",
        "the anonymous variable `$_` has no properties: every use of it is another one",
        "give the variable a name",
    ),
    (
        "T6",
        "query q($n: String) { match { $p: Person ⟦$n.age⟧ > 3 } return { $p } }",
        "`$n` is a parameter and has no properties",
        None,
    ),
    (
        "T6",
        "query q { match { $p: Person } with { $p.age as a } match { $q: Person } return { $q, ⟦$p⟧.name, a } }",
        "`$p` is not known behind a `with` that does not list it",
        "pass it on: `with { $p, … }`",
    ),
    (
        "T6",
        "query q { delete Person where ⟦$p⟧.age > 3 }",
        "`$p` is not bound: there is no match block before the statements",
        "write `age` for the property of the row",
    ),
    (
        "T7",
        'query q { match { $p: Person $p.age > ⟦"3"⟧ } return { $p } }',
        'expected I32, found the string "3"',
        None,
    ),
    (
        "T7",
        'query q { update Person set { age: ⟦3000000000⟧ } where name = "a" }',
        "`age` is I32: 3000000000 does not fit I32 (-2147483648 to 2147483647)",
        None,
    ),
    (
        "T7",
        'query q { update Person set { visits: ⟦-1⟧ } where name = "a" }',
        "`visits` is U64: -1 does not fit U64 (0 to 18446744073709551615)",
        None,
    ),
    (
        "T7",
        'query q { update Person set { height: ⟦16777217⟧ } where name = "a" }',
        "`height` is F32: 16777217 cannot be written exactly as F32",
        None,
    ),
    (
        "T7",
        'query q { match { $p: Person $p.status = ⟦"activ"⟧ } return { $p } }',
        '"activ" is not one of active, retired',
        "did you mean `active`?",
    ),
    (
        "T7",
        'query q { match { $p: Person $p.status in ⟦["active", "x"]⟧ } return { $p } }',
        'in the list: "x" is not one of active, retired',
        None,
    ),
    (
        "T7",
        'query q { match { $p: Person $p.born > ⟦"2026-01-02"⟧ } return { $p } }',
        'expected Date, found the string "2026-01-02"',
        'write date("2026-01-02")',
    ),
    (
        "T7",
        "query q { match { $p: Person $p.born < ⟦now()⟧ } return { $p } }",
        "`<` cannot compare Date with DateTime",
        "a Date and a DateTime are different things",
    ),
    (
        "T7",
        'query q { match { $p: Person $p.born = date(⟦"2026-02-30"⟧) } return { $p } }',
        '"2026-02-30" is not a Date: there is no such day',
        None,
    ),
    (
        "T7",
        "query q { match { $p: Person ⟦$p.age < null⟧ } return { $p } }",
        "`<` with null is never true",
        "test for null with `= null` or `!= null`",
    ),
    (
        "T7",
        'query q { match { $p: Person ⟦$p.age⟧ starts_with "x" } return { $p } }',
        "`starts_with` needs text on its left, and this is I32",
        None,
    ),
    (
        "T7",
        "query q { match { $p: Person ⟦$p.age⟧ contains 3 } return { $p } }",
        "`contains` needs a list or text on its left, and this is I32",
        None,
    ),
    (
        "T7",
        'query q { match { $p: Person ⟦$p = "Ada"⟧ } return { $p } }',
        "`$p` is a bound Person and cannot be compared with a value",
        "name a property: `$p.id`",
    ),
    (
        "T7",
        "query q { match { $p worksAt $c ⟦$p = $c⟧ } return { $p } }",
        "`$p` is a Person and `$c` a Company: they are never the same",
        None,
    ),
    (
        "T7",
        "query q { match { $p: Person $p.age = ⟦99999999999999999999⟧ } return { $p } }",
        "99999999999999999999 does not fit any integer type",
        None,
    ),
    (
        "T7",
        "query q { match { $p: Person ⟦$p.embedding⟧ = 3 } return { $p } }",
        "`=` compares single values, and this is a vector",
        "rank by `nearest(…)` in `order`",
    ),
    (
        "T7",
        'query q($a: I64) { insert Person { name: "x", age: ⟦$a⟧ } }',
        "`age` is I32, and this is I64",
        "declare it as `$a: I32`",
    ),
    (
        "T7",
        'query q { insert Person { name: "x", status: ⟦"no"⟧ } }',
        '`status` is enum(active, retired): "no" is not one of active, retired',
        None,
    ),
    (
        "T7",
        'query q { insert Person { name: "x", embedding: ⟦[1, 2]⟧ } }',
        "`embedding` is Vector(3): expected a vector of 3 numbers, found 2",
        None,
    ),
    (
        "T8",
        "query q { match { $p: Person } return { sum(⟦$p.name⟧) as n } }",
        "`sum` needs a number, and this is String",
        None,
    ),
    (
        "T8",
        "query q { match { $p: Person } return { max(⟦$p.tags⟧) as n } }",
        "`max` needs a number, text, date or Boolean, and this is [String]",
        None,
    ),
    (
        "T8",
        "query q { match { $p: Person } return { avg(⟦$p⟧) as n } }",
        "`avg` needs a number, and this is Person",
        "name a property: `$p.p`",
    ),
    (
        "T9",
        "query q { match { $p: Person ⟦count($p)⟧ > 3 } return { $p } }",
        "the aggregate `count` belongs in `return`, `with`, `having` or `order`, not in a match block",
        None,
    ),
    (
        "T9",
        "query q { match { $p: Person } return { sum(⟦count($p)⟧) as n } }",
        "aggregates cannot be nested",
        None,
    ),
    (
        "T9",
        "query q { match { $p: Person } return { $p.name } order { ⟦count($p)⟧ } }",
        "an aggregate in `order` needs one in `return`, which groups the rows",
        None,
    ),
    (
        "T9",
        "query q { match { $p: Person } return { $p.name, count($p) as n } order { ⟦$p.age⟧ } }",
        "`$p.age` is not returned, so it has no single value in a group",
        "return it, or aggregate it",
    ),
    (
        "T9",
        "query q { match { $p: Person } return { $p.name, ⟦count($p) > $p.age as n⟧ } }",
        "`$p.age` is not returned, so it has no single value in a group",
        "return it, or aggregate it",
    ),
    (
        "T10",
        'query q { insert ⟦Persn⟧ { name: "x" } }',
        "unknown type `Persn`",
        "did you mean `Person`?",
    ),
    (
        "T11",
        'query q { insert Person { name: "x", ⟦agee⟧: 3 } }',
        "`Person` has no property `agee`",
        "did you mean `age`?",
    ),
    (
        "T11",
        "query q { delete Person where ⟦agee⟧ = 3 }",
        "`Person` has no property `agee`",
        "did you mean `age`?",
    ),
    (
        "T11",
        'query q { insert BlockedBy { from: "a", to: "b", ⟦src⟧: "c" } }',
        "`BlockedBy` has no property `src`",
        "the ends of an edge are written `from` and `to`",
    ),
    (
        "T12",
        'query q { insert ⟦Company⟧ { name: "x" } }',
        "`size` of Company is required and not given",
        None,
    ),
    (
        "T12",
        'query q { insert ⟦WorksAt⟧ { from: "x" } }',
        "`to`, `role` of WorksAt are required and not given",
        None,
    ),
    (
        "T12",
        'query q { update Company set { size: ⟦null⟧ } where name = "x" }',
        "`size` is required and cannot be null",
        None,
    ),
    (
        "T13",
        'query q { insert Person { name: "x", ⟦name⟧: "y" } }',
        "`name` is assigned twice",
        None,
    ),
    (
        "T13",
        'query q { match { $p: Person { name: "x", ⟦name⟧: "y" } } return { $p } }',
        "property `name` is given twice",
        None,
    ),
    (
        "T14",
        "query q($name: String) { match { $p: Person { name: ⟦$nam⟧ } } return { $p } }",
        "parameter `$nam` is not declared",
        "did you mean `$name`?",
    ),
    (
        "T14",
        "query q { delete Person where age = ⟦$x⟧ }",
        "parameter `$x` is not declared",
        "declare it: `query …($x: String)`",
    ),
    (
        "T15",
        "query q { match { $p knows⟦{1,}⟧ $f } return { $p } }",
        "the bounds of a traversal must be finite: `{1,3}`",
        None,
    ),
    (
        "T15",
        "query q { match { $p knows⟦{0,2}⟧ $f } return { $p } }",
        "a traversal has at least one hop, and this asks for 0",
        None,
    ),
    (
        "T15",
        "query q { match { $p knows⟦{3,2}⟧ $f } return { $p } }",
        "the upper bound 2 is below the lower bound 3",
        None,
    ),
    (
        "T15",
        "query q { match { $p worksAt⟦{1,2}⟧ $f } return { $p } }",
        "`WorksAt` goes from Person to Company, so it cannot be followed twice",
        None,
    ),
    (
        "T16",
        "query q($a: I32, ⟦$a⟧: I32) { match { $p: Person } return { $p } }",
        "parameter `$a` is declared twice",
        None,
    ),
    (
        "T16",
        "query q($p: I32) { match { ⟦$p⟧: Person } return { 1 as a } }",
        "`$p` is a parameter and cannot be bound in the match block",
        "rename the variable or the parameter",
    ),
    (
        "T16",
        "query q($v: ⟦Vector⟧) { match { $p: Person } return { $p } }",
        "a vector needs its dimension: `Vector(384)`",
        None,
    ),
    (
        "T17",
        "query q($v: Vector(3)) { match { $p: Person } return { $p } order { ⟦nearest($p.embedding, $v)⟧ } }",
        "`nearest` needs a `limit`",
        "add `limit 10`",
    ),
    (
        "T18",
        "query q { match { $p: Person } return { ⟦cout⟧($p) as n } }",
        "unknown function `cout`",
        "did you mean `count`?",
    ),
    (
        "T18",
        "query q { match { $p: Person ⟦search($p.bio)⟧ } return { $p } }",
        "`search` takes 2 arguments, found 1",
        None,
    ),
    (
        "T18",
        'query q { match { $p: Person fuzzy($p.bio, "x", ⟦-1⟧) } return { $p } }',
        "`fuzzy` needs an integer of 0 or more here",
        None,
    ),
    (
        "T18",
        'query q { match { $p: Person } return { $p } order { rrf(⟦$p.age⟧, bm25($p.bio, "x")) } limit 3 }',
        "`rrf` fuses two rankings: `nearest(…)` or `bm25(…)`",
        None,
    ),
    (
        "T19",
        'query q { match { $p: Person search(⟦$p.age⟧, "x") } return { $p } }',
        "`search` needs a String property, and `$p.age` is I32",
        None,
    ),
    (
        "T19",
        "query q { match { $p: Person search($p.bio, ⟦3⟧) } return { $p } }",
        "`search` looks for text, and this is I64",
        None,
    ),
    (
        "T19",
        "query q($v: Vector(4)) { match { $p: Person } return { $p } order { nearest($p.embedding, ⟦$v⟧) } limit 3 }",
        "`nearest` needs Vector(3) or text to look for, and this is Vector(4)",
        None,
    ),
    (
        "T19",
        "query q($v: Vector(4)) { match { $p: Person } return { $p } order { nearest(⟦$p.bio⟧, $v) } limit 3 }",
        "`nearest` needs a vector property, and `$p.bio` is String",
        None,
    ),
    (
        "T20",
        "query q { match { $p: Person } return { $p } limit ⟦-1⟧ }",
        "`limit` needs a non-negative integer or an integer parameter",
        None,
    ),
    (
        "T20",
        "query q($n: I32?) { match { $p: Person } return { $p } limit ⟦$n⟧ }",
        "`limit` needs a non-negative integer or an integer parameter",
        "make `$n` required",
    ),
    (
        "T21",
        'query q { match { $p: Person } return { $p } order { ⟦rrf(bm25($p.bio, "a"), bm25($p.name, "b"))⟧ } }',
        "`rrf` needs a `limit`",
        "add `limit 10`",
    ),
    (
        "T22",
        "query q { match { $p <⟦worksAt⟧> $c } return { $p } }",
        "`WorksAt` goes from Person to Company; `<…>` needs both ends of one type",
        "write `$a worksAt $b`",
    ),
    (
        "T23",
        "query q { match { $p $w:knows⟦{1,2}⟧ $c } return { $p } }",
        "an edge can be bound over a single hop only",
        "leave out the bounds",
    ),
    (
        "T23",
        "query q { match { $p $w:knows $c $c ⟦$w⟧:knows $d } return { $p } }",
        "`$w` is bound already; an edge variable is bound once",
        None,
    ),
    (
        "T23",
        "query q { match { $p $w:knows $c ⟦$w⟧ knows $d } return { $p } }",
        "`$w` is bound to an edge and cannot be used as a node",
        None,
    ),
    (
        "T24",
        "query q { match { $p: Person } return { ⟦$p.photo⟧ } }",
        "a blob cannot be returned by a query",
        None,
    ),
    (
        "T24",
        "query q { match { $p: Person } return { $p } order { ⟦$p.photo⟧ } }",
        "rows cannot be sorted by a blob",
        None,
    ),
    (
        "T24",
        "query q { match { $p: Person } return { count(⟦$p.photo⟧) as n } }",
        "`count` cannot look into a blob",
        None,
    ),
    (
        "T25",
        'query q { update Person set { ⟦name⟧: "x" } where name = "y" }',
        "`name` is part of the key of Person and cannot be updated",
        "delete the row and insert a new one",
    ),
    (
        "T25",
        'query q { update BlockedBy set { ⟦from⟧: "x" } where from = "y" }',
        "the ends of an edge cannot be updated (`from` of BlockedBy)",
        "delete the row and insert a new one",
    ),
    (
        "T25",
        'query q { insert Person { name: "x", ⟦id⟧: "y" } }',
        "the id of a Person is derived from its key (name)",
        "leave `id` out",
    ),
    (
        "T26",
        "query q { match { $p: Person } return { $p.name as n, ⟦$p.age as n⟧ } }",
        "two columns are called `n`",
        "name one with `as`",
    ),
    (
        "T27",
        "query q { match { $p: Person ⟦not { $q: Company }⟧ } return { $p } }",
        "a `not` block must use at least one variable that is bound outside of it",
        None,
    ),
    (
        "T38",
        'query q { match { $p: Person ⟦bm25($p.bio, "x")⟧ > 1 } return { $p } }',
        "`bm25` ranks rows and belongs in `return` or `order`",
        "filter text with `search(…)`",
    ),
    (
        "T41",
        "query q { match { $p: Person ⟦$p.age⟧ } return { $p } }",
        "a condition must be Bool, and this is I32",
        "compare it with something",
    ),
    (
        "T41",
        "query q { match { $p: Person $p.active and ⟦$p⟧ } return { $p } }",
        "a condition must be Bool, and this is a Person",
        "compare it with something",
    ),
    (
        "T43",
        "query q { match { $p: Person } return { ⟦$p.age > 3⟧ } }",
        "a comparison needs a name in `return`",
        "add `as name`",
    ),
    (
        "T44",
        "query q { delete Person where ⟦count(age)⟧ > 3 }",
        "the aggregate `count` cannot be used in a mutation",
        None,
    ),
    (
        "T44",
        'query q { delete Person where ⟦search(bio, "x")⟧ }',
        "`search` cannot be used in a mutation",
        None,
    ),
    (
        "T45",
        "query q { match { $p: Person $f: Person { name: ⟦$p.name⟧ } } return { $f } }",
        "a literal or a parameter is needed here, not the property `$p.name`",
        None,
    ),
    (
        "T45",
        "query q { match { $p: Person { status: ⟦active⟧ } } return { $p } }",
        "a literal or a parameter is needed here, not the name `active`",
        'write "active" for a string, or `$active` for a parameter',
    ),
    (
        "T11",
        'query q { update Person set { status: ⟦retired⟧ } where name = "a" }',
        "`Person` has no property `retired`",
        'write "retired" for the value of an enum',
    ),
    (
        "T45",
        "query q { match { $p: Person } return { $p } limit ⟦$p.age⟧ }",
        "a literal or a parameter is needed here, not the property `$p.age`",
        None,
    ),
    (
        "T7",
        "query q { update Person set { age: ⟦3.5⟧ } where true }",
        "`age` is I32: 3.5 is not a whole number, and I32 holds whole numbers",
        None,
    ),
    (
        "T7",
        'query q { match { $p: Person } return { ⟦$p.age + "x"⟧ as a } }',
        "`+` cannot take I32 and String",
        "join text with text: `to_string(…)`",
    ),
    (
        "T7",
        "query q { match { $p: Person } return { ⟦$p.born - $p.born⟧ as a } }",
        "`-` cannot take Date and Date",
        "use `days_between(a, b)` or `seconds_between(a, b)`",
    ),
    (
        "T7",
        "query q { match { $p: Person } return { ⟦null⟧ + 1 as a } }",
        "`+` cannot take null, which has no type of its own",
        None,
    ),
    (
        "T7",
        "query q { match { $p: Person } return { -⟦$p.name⟧ as a } }",
        "`-` needs a number, and this is String",
        None,
    ),
    (
        "T7",
        'query q { match { $p: Person } return { case { when true then 1 else ⟦"x"⟧ } as a } }',
        "the values of `case` must be of one type, and are I64, String",
        None,
    ),
    (
        "T41",
        "query q { match { $p: Person } return { case { when ⟦$p.age⟧ then 1 else 2 } as a } }",
        "a condition must be Bool, and this is I32",
        "compare it with something",
    ),
    (
        "T3",
        "query q { match { $p: Person } return { ⟦$p.name⟧[0] as a } }",
        "`[…]` takes an item of a list, and this is String",
        "take a part of text with `substring(…)`",
    ),
    (
        "T8",
        "query q { match { $p: Person } return { collect(⟦$p⟧) as a } }",
        "`collect` needs a number, text, date or Boolean, and this is Person",
        "collect ids: `$p.@id`",
    ),
    (
        "T9",
        "query q { match { $p: Person } return { $p.name } having { ⟦count($p) > 1⟧ } }",
        "an aggregate in `having` needs one in `return`, which groups the rows",
        None,
    ),
    (
        "T9",
        "query q { match { $p: Person } return distinct { $p.name } order { ⟦$p.age⟧ } }",
        "`$p.age` is not in `return distinct`, so it has no single value to sort by",
        "return it, or aggregate it",
    ),
    (
        "T18",
        "query q { match { $p: Person } return { ⟦lowr⟧($p.name) as a } }",
        "unknown function `lowr`",
        "did you mean `lower`?",
    ),
    (
        "T18",
        "query q { match { $p: Person } return { lower(⟦$p.age⟧) as a } }",
        "`lower` needs text here, and this is I32",
        None,
    ),
    (
        "T18",
        "query q { match { $p: Person } return { ⟦substring($p.name)⟧ as a } }",
        "`substring` takes 2 to 3 arguments, found 1",
        "it is `substring(String, Int, Int?) -> String`",
    ),
    (
        "T18",
        "query q { match { $p: Person } return { size(⟦$p.name⟧) as a } }",
        "`size` needs a list here, and this is String",
        "use `length(…)`",
    ),
    (
        "T18",
        'query q { match { $p: Person } return { date_trunc(⟦"moth"⟧, $p.born) as a } }',
        "`date_trunc` needs the name of a unit of time here: one of year, quarter, month, week, day, hour, minute, "
        "second",
        "did you mean `month`?",
    ),
    (
        "T18",
        "query q { match { $p: Person } return { ⟦lower(distinct $p.name)⟧ as a } }",
        "`distinct` belongs into an aggregate, and `lower` is none",
        None,
    ),
    (
        "T20",
        "query q { match { $p: Person } return { $p } offset ⟦-1⟧ }",
        "`offset` needs a non-negative integer or an integer parameter",
        None,
    ),
    (
        "T23",
        "query q { match { $p $w:knows $f as ⟦$path⟧ } return { $p } }",
        "a traversal binds its edge or its path, not both",
        None,
    ),
    (
        "T27",
        "query q { match { $p: Person ⟦exists { $x: Company }⟧ } return { $p } }",
        "an `exists` block must use at least one variable that is bound outside of it",
        None,
    ),
    (
        "T29",
        "query q { match { $p: Person } with { ⟦$p.age⟧ } match { $q: Person } return { $q } }",
        "a value needs a name in `with`, to be used behind it",
        "add `as name`",
    ),
    (
        "T29",
        "query q { match { $p: Person } with { $p as ⟦q⟧ } match { $r: Person } return { $r } }",
        "`$p` keeps its name in `with`",
        "write `$p`",
    ),
    (
        "T6",
        "query q { match { $p knows $f } with { $p } match { $p knows $g } return { ⟦$f⟧ } }",
        "`$f` is not known behind a `with` that does not list it",
        "pass it on: `with { $f, … }`",
    ),
    (
        "T30",
        "query q { match { $p knows{1,2} $f as $path } return { ⟦$path⟧ } }",
        "`$path` is a path and no value",
        "look into it with `hops($path)`, `nodes($path)` or `edges($path)`",
    ),
    (
        "T30",
        "query q { match { $p knows $f } return { hops(⟦$p⟧) as n } }",
        "`hops` looks into a path that a traversal binds",
        "write `$a knows{1,3} $b as $path` and `hops($path)`",
    ),
    (
        "T31",
        "query q { match { $p: Person $p knows[⟦$p.age⟧ > 3] $f } return { $f } }",
        "the condition of a traversal looks at its edges only, not at `$p.age`",
        "bare names are the edge's properties; compare other variables in a filter of their own",
    ),
    (
        "T2",
        'query q { match { $p knows[⟦sinc⟧ > date("2020-01-01")] $f } return { $f } }',
        "`Knows` has no property `sinc`",
        "did you mean `since`?",
    ),
    (
        "T32",
        'query q { match { $p: Person $p.name matches ⟦"(a"⟧ } return { $p } }',
        "the pattern is not in the dialect: this group is not closed",
        "the whole value is matched; `.*` on both sides looks anywhere",
    ),
    (
        "T33",
        'query q($n: I32 = ⟦"a"⟧) { match { $p: Person { age: $n } } return { $p } }',
        'the default of `$n` is not I32: expected I32, found the string "a"',
        None,
    ),
    (
        "T34",
        "query q { match { $p: Person } delete ⟦$q⟧ }",
        "`$q` is not bound in the match block",
        "bind it there",
    ),
    (
        "T34",
        "query q { match { $p * $q } delete ⟦$q⟧ }",
        "`delete` needs entities of one type, and `$q` is of several types",
        "bind it to one node or edge type",
    ),
    (
        "T35",
        "query q($r: [Company]) { insert Person from ⟦$r⟧ }",
        "`insert Person from` needs rows of Person, and `$r` is [Company]",
        "declare it as `$r: [Person]`",
    ),
    (
        "T36",
        "query q { match { $p: Person $c: Company $p worksAt|⟦knows⟧ $c } return { $p } }",
        "`knows` (Person -> Person) does not lead from Person to Company",
        None,
    ),
    (
        "T36",
        "query q { match { $n: Note $c: Company $n ⟦*⟧ $c } return { $n } }",
        "no edge type leads from Note to Company",
        None,
    ),
    (
        "T37",
        "query q { match { $p: Person } return { ⟦days(3)⟧ as a } }",
        "`days(…)` stands beside a Date or a DateTime, behind `+` or `-`",
        "write `$x.p + days(3)`",
    ),
    (
        "T38",
        'query q { match { $p: Person ⟦bm25($p.bio, "x")⟧ > 1 } return { $p } }',
        "`bm25` ranks rows and belongs in `return` or `order`",
        "filter text with `search(…)`",
    ),
    (
        "T38",
        "query q($v: Vector(3)) { match { $p: Person ⟦nearest($p.embedding, $v)⟧ < 0.3 } return { $p } }",
        "`nearest` ranks rows and belongs in `return` or `order`",
        "sort by it in `order`, with a `limit`",
    ),
    (
        "T1",
        "query q($n: ⟦Decimal⟧ = 3) { match { $p: Person $p.age > $n } return { $p, $n + 1 as m } }",
        "unknown parameter type `Decimal`",
        None,
    ),
    (
        "T6",
        "query q { match { $p: Person not { $p knows $x } } return { ⟦$x⟧.name } }",
        "`$x` belongs to the block that binds it and is not known outside",
        "`optional` hands on what it binds, and `either` what all of its arms bind",
    ),
    (
        "T6",
        "query q { match { $p: Person either { $p knows $x $x knows $y } or { $p knows $x } } return { $x, ⟦$y⟧ } }",
        "`$y` belongs to the block that binds it and is not known outside",
        "`optional` hands on what it binds, and `either` what all of its arms bind",
    ),
    (
        "T7",
        'query q { match { } return { ⟦[1, "a"]⟧ as l } }',
        "the items of a list are of one type",
        None,
    ),
    (
        "T7",
        'query q { match { $p: Person } return { ⟦["a"] + "z"⟧ as l } }',
        "`+` cannot take [String] and String",
        "join lists of one type: `[…]`",
    ),
    (
        "T18",
        'query q { match { $p: Person } return { coalesce($p.age, ⟦"z"⟧) as l } }',
        "`coalesce` needs a value of one type with the others (I32) here, and this is String",
        None,
    ),
]


@pytest.mark.parametrize(("code", "text", "message", "hint"), CASES, ids=[f"{c[0]}-{c[2][:40]}" for c in CASES])
def test_error_has_its_code_its_place_and_its_words(code: str, text: str, message: str, hint: str | None) -> None:
    source, [place] = unmarked(text)
    with pytest.raises(QueryTypeError) as raised:
        compiled(source)
    [found] = raised.value.diagnostics
    assert (found.code, found.message, found.hint) == (code, message, hint)
    assert (found.span.start, found.span.end) == place
    assert (found.span.line, found.span.column) == (1, place[0] + 1)
    assert found.severity is Severity.ERROR


def test_T28_aliases_cannot_make_an_expression_explode() -> None:
    chain = ", ".join(f"a{i} = a{i} as a{i + 1}" for i in range(64))
    with pytest.raises(QueryTypeError) as raised:
        compiled(f"query q {{ match {{ $p: Person }} return {{ $p.age as a0, {chain} }} }}")
    assert set(raised.value.codes) == {"T28", "T6"}
    first = raised.value.diagnostics[0]
    assert first.message == "the expressions become too large (over 20000 parts) when aliases are put in"


def test_T28_the_number_of_rankings_is_bounded() -> None:
    columns = ", ".join(f'bm25($p.bio, "{i}") as a{i}' for i in range(51))
    with pytest.raises(QueryTypeError) as raised:
        compiled(f"query q {{ match {{ $p: Person }} return {{ {columns} }} }}")
    assert raised.value.codes == ("T28",)
    assert raised.value.diagnostics[0].message.startswith("the query computes 51 different rankings")


def test_every_code_has_a_case() -> None:
    elsewhere = {"Q000", "T28", "L201", "L202", "L203"}
    assert {case[0] for case in CASES} | elsewhere == set(MEANINGS)


def test_all_errors_of_a_query_are_reported_in_text_order() -> None:
    source, places = unmarked(
        """query q($n: String) {
  match {
    $c: ⟦Compny⟧ { name: $n }
    $p ⟦worksFor⟧ $c
    $p: Person
    $p.⟦agee⟧ > 3
    ⟦$q⟧.x = 1
    $p.age > ⟦"x"⟧
  }
  return { $p, ⟦$p.age > 3⟧ }
  limit ⟦-1⟧
}"""
    )
    with pytest.raises(QueryTypeError) as raised:
        compiled(source)
    error = raised.value
    assert error.codes == ("T1", "T4", "T2", "T6", "T7", "T43", "T20")
    assert [(d.span.start, d.span.end) for d in error.diagnostics] == places
    assert [d.span.line for d in error.diagnostics] == [3, 4, 6, 7, 8, 10, 11]
    assert error.kind == "type"


def test_one_mistake_gives_one_error() -> None:
    """What follows from an unknown type is not reported again."""
    with pytest.raises(QueryTypeError) as raised:
        compiled("query q { match { $p: Persn { nam: 3 } $p.agee > 3 } return { $p.x } order { $p.y } }")
    assert raised.value.codes == ("T1",)


def test_rendering_shows_the_line_and_a_caret() -> None:
    with pytest.raises(LanguageError) as raised:
        compiled("query q {\n  match { $p: Persn }\n  return { $p }\n}")
    assert str(raised.value) == (
        "error[T1]: unknown node type `Persn`\n"
        " --> <query>:2:15\n"
        "  |\n"
        "2 |   match { $p: Persn }\n"
        "  |               ^^^^^\n"
        "  = help: did you mean `Person`?"
    )


def test_parse_errors_come_before_type_errors() -> None:
    with pytest.raises(QueryParseError):
        compiled("query q { match { $p: Persn } retrun { $p } }")


def test_lint_gives_the_same_findings() -> None:
    report = lint(SCHEMA, {"a.gq": "query q { match { $p: Persn } return { $p } }"})
    [finding] = [each for each in report.findings if each.diagnostic.severity is Severity.ERROR]
    assert (finding.diagnostic.code, finding.file, finding.query) == ("T1", "a.gq", "q")
