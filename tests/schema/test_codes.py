"""Every error and warning of the schema language: its code, its place, its message and its hint.

In the sources below, the place is marked with « and ».
"""

from __future__ import annotations

import pytest

from omnigraph.diagnostics import SchemaError, Severity
from omnigraph.schema.codes import SCHEMA_CODES
from omnigraph.schema.compile import check_schema, compile_schema
from omnigraph.schema.limits import MAX_DIAGNOSTICS, MAX_SOURCE_LENGTH
from omnigraph.schema.parse import parse_schema

TYPES = "String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime"
DIALECT = "the dialect is the part of RE2 that all engines share"
EDGES_ONLY = "edge bodies take `@key`, `@unique` and `@index`"
EMBED = 'write `@embed("source")` or `@embed("source", model="name")`'
CARD = "write `@card(0..1)`, `@card(1..)` or `@card(..3)`"
RANGE = "write `@range(property, low..high)`; either end may be left out"

ERRORS = [
    # --- S10x: how it is written ---------------------------------------------------------------------------------
    ("S100", "node A { a «String» }", "expected `:`, found `String`", None),
    ("S100", "«nod» A { }", "expected a declaration, found `nod`", "did you mean `node`?"),
    ("S100", "node «{» }", "expected a name, found `{`", None),
    ("S100", "node A { a: «}»", "expected `[`, `enum` or a name, found `}`", None),
    (
        "S100",
        "node A {\n  a: String«»\n",
        "expected `(`, `,`, `?`, `}`, a name or an annotation, found the end of the file",
        "the `{` on line 1 is not closed",
    ),
    (
        "S100",
        "node A {\n  a: String\n«node» B { }",
        "expected `(`, `,`, `?`, `}`, a name or an annotation, found the next declaration",
        "the `{` on line 1 is not closed",
    ),
    ("S100", "edge E: A «{»}", "expected `->`, found `{`", None),
    ("S100", "node A {} edge E: A -> A { @key(src«;» dst) }", "expected `)`, `,` or `=`, found `;`", None),
    ("S101", "node A { a: String «#» }", "`#` has no meaning here", None),
    ("S101", "node «Ä» { }", "`Ä` has no meaning here", "names are made of the letters a to z, digits and `_`"),
    ("S101", "node A @note(«'»x') { }", "`'` has no meaning here", "strings stand in double quotes"),
    ("S101", "node A { «\x00» }", "`U+0000` has no meaning here", None),
    ("S101", "node A { «\ud800» }", "half of a surrogate pair (U+D800) is not a character", "save the file as UTF-8"),
    (
        "S102",
        'node A @note(«"open)» \n{ }',
        "this string is not closed on its line",
        'add `"`; a line break is `\\n`',
    ),
    ("S103", "node A { } «/*» and on", "this comment is never closed", "add `*/`"),
    (
        "S104",
        r'node A { a: String @default("x«\d»") }',
        r"strings have no escape `\d`",
        r"write a backslash itself as `\\`; the escapes are those of JSON",
    ),
    (
        "S104",
        r'node A @note("«\u12»") { }',
        r"`\u` needs four hexadecimal digits",
        r"write a backslash itself as `\\`; the escapes are those of JSON",
    ),
    (
        "S104",
        r'node A @note("«\ud83d»") { }',
        "half of a surrogate pair is not a character",
        r"write a backslash itself as `\\`; the escapes are those of JSON",
    ),
    ("S105", f"node A @note(«{'9' * 500}») {{ }}", "a number of 500 characters is too large to be meant", None),
    ("S105", "node A @note(«1e999») { }", "`1e999` is too large for a 64-bit float", None),
    (
        "S109",
        "node A { a: String, «@key» }",
        "`@key` does not follow the property it belongs to",
        "write it after its property, or name the property: `@key(…)`",
    ),
    (
        "S109",
        'node A { «@embed("a")» }',
        "`@embed` does not follow the property it belongs to",
        "an annotation of a property stands right after its type, before any comma or constraint",
    ),
    (
        "S109",
        "node A { a: String @unique(a) «@index» }",
        "`@index` does not follow the property it belongs to",
        "write it after its property, or name the property: `@index(…)`",
    ),
    # --- S11x: names ---------------------------------------------------------------------------------------------
    ("S110", "node «person» { }", "the type name `person` must start with an upper-case letter", "write `Person`"),
    ("S110", "interface «_n» { }", "the type name `_n` must start with an upper-case letter", "write `N`"),
    (
        "S111",
        "node A { «Name»: String }",
        "the property name `Name` must start with a lower-case letter or `_`",
        "write `name`",
    ),
    (
        "S112",
        "node A { «id»: String }",
        "the name `id` is reserved: `id` is a column that the store keeps itself",
        "choose another name",
    ),
    (
        "S112",
        "node A { «iD»: String }",
        "the name `iD` is reserved: `id` is a column that the store keeps itself",
        "choose another name",
    ),
    (
        "S112",
        "node A { «src»: String }",
        "the name `src` is reserved: `src` is a column that the store keeps itself",
        "choose another name",
    ),
    (
        "S112",
        "interface A { «dst»: String }",
        "the name `dst` is reserved: `dst` is a column that the store keeps itself",
        "choose another name",
    ),
    (
        "S112",
        "node A { «__x»: String }",
        "the name `__x` is reserved: names that start with `__` belong to the store",
        "choose another name",
    ),
    (
        "S112",
        "node «__A» { }",
        "the name `__A` is reserved: names that start with `__` belong to the store",
        "choose another name",
    ),
    *(
        (
            "S112",
            f"node A {{ «{name}»: String }}",
            f"the name `{name}` is reserved: `{name}` is a virtual column of Lance",
            "choose another name",
        )
        for name in ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
    ),
    (
        "S113",
        "node A { }\nnode «A» { }",
        "`A` is declared already, as a node type on line 1",
        "give one of them another name",
    ),
    (
        "S113",
        "interface A { } node «A» { }",
        "`A` is declared already, as an interface on line 1",
        "give one of them another name",
    ),
    (
        "S113",
        "node A { } edge E: A -> A edge «E»: A -> A",
        "`E` is declared already, as an edge type on line 1",
        "give one of them another name",
    ),
    ("S114", "node A {\n a: String\n «a»: I32 }", "`A` has a property `a` already, on line 2", "remove one of them"),
    (
        "S115",
        "node A { } edge WorksAt: A -> A edge «Worksat»: A -> A",
        "`Worksat` and the edge type `WorksAt` on line 1 differ only by case",
        "edge types are looked up without regard to case",
    ),
    (
        "S115",
        "node Likes { } edge «LIKES»: Likes -> Likes",
        "`LIKES` and the node type `Likes` on line 1 differ only by case",
        "edge types are looked up without regard to case",
    ),
    (
        "S116",
        "node A { userName: String «username»: String }",
        "the properties `userName` and `username` of `A` differ only by case",
        "columns are looked up without regard to case by SQL engines",
    ),
    (
        "S116",
        "interface I { aB: I32 } node A implements I { «ab»: I32 }",
        "the properties `aB` and `ab` of `A` differ only by case",
        "columns are looked up without regard to case by SQL engines",
    ),
    ("S117", "node Person { } edge E: Person -> «Persn»", "there is no node type `Persn`", "did you mean `Person`?"),
    ("S117", "node A { } edge E: «Company» -> A", "there is no node type `Company`", "declare `node Company { … }`"),
    ("S117", "interface I { } node A { } edge E: «I» -> A", "`I` is an interface; an edge connects node types", None),
    ("S117", "node A { } edge E: A -> «E»", "`E` is an edge type; an edge connects node types", None),
    (
        "S118",
        "interface Named { } node A implements «Namd» { }",
        "there is no interface `Namd`",
        "did you mean `Named`?",
    ),
    ("S118", "node A implements «Zzz» { }", "there is no interface `Zzz`", "declare `interface Zzz { … }`"),
    ("S118", "node B { } node A implements «B» { }", "`B` is not an interface", "only interfaces can be implemented"),
    ("S119", "interface I { } node A implements I, «I» { }", "`A` implements `I` twice", "name it once"),
    # --- S12x: types ---------------------------------------------------------------------------------------------
    ("S120", "node A { a: «Strng» }", "there is no type `Strng`", "did you mean `String`?"),
    ("S120", "node A { a: «int» }", "there is no type `int`", "write `I64`"),
    (
        "S120",
        "node A { a: «Qqqqq» }",
        "there is no type `Qqqqq`",
        "types are String, Blob, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime",
    ),
    ("S120", "node A { a: «Vectr(3)» }", "there is no type `Vectr`", "did you mean `Vector`?"),
    ("S121", "node A { a: «Vector» }", "`Vector` needs its dimension", "write `Vector(384)`"),
    ("S121", "node A { a: Vector(«0») }", "a vector has between 1 and 65536 components, not 0", None),
    ("S121", "node A { a: Vector(«65537») }", "a vector has between 1 and 65536 components, not 65537", None),
    *(
        (
            "S122",
            f"node A {{ a: [«{item}»] }}",
            "a list holds scalars: no lists, enums, vectors or blobs",
            f"write one of {TYPES}",
        )
        for item in ("[I32]", "enum(a)", "Vector(2)", "Blob")
    ),
    ("S122", "node A { a: [«I32?»] }", "the items of a list cannot be nullable", "write `[T]?` for a list or null"),
    ("S123", "node A { a: «enum()» }", "an enum needs at least one value", "write `enum(first, second)`"),
    ("S124", "node A { a: «String(10)» }", "`String` takes no size", "write `String`"),
    # --- S13x: constraints ---------------------------------------------------------------------------------------
    ("S130", "node A { name: String @unique(«nam») }", "`A` has no property `nam`", "did you mean `name`?"),
    ("S130", "node A { name: String @index(«zzz») }", "`A` has no property `zzz`", None),
    ("S130", "node A { name: String @unique(«src») }", "`A` has no property `src`", "only edges have `src` and `dst`"),
    ("S130", 'node A { name: String @check(«nam», "a") }', "`A` has no property `nam`", "did you mean `name`?"),
    (
        "S130",
        "node A { } edge E: A -> A { @key(src, dst, «sinc») since: Date }",
        "`E` has no property `sinc`",
        "did you mean `since`?",
    ),
    (
        "S131",
        "node A { } edge E: A -> A { a: I32 «@range(a, 0..1)» }",
        "`@range` is not allowed on edge types",
        EDGES_ONLY,
    ),
    (
        "S131",
        'node A { } edge E: A -> A { a: String «@check(a, "x")» }',
        "`@check` is not allowed on edge types",
        EDGES_ONLY,
    ),
    (
        "S131",
        "node A { } edge E: A -> A { a: I32 «@key» }",
        "the key of an edge is not written on a property",
        "write `@key(src, dst, a)` in the body",
    ),
    (
        "S131",
        "interface I { a: I32 «@unique(a)» }",
        "the interface `I` cannot have the constraint `@unique(…)`",
        "write `@unique` after the property, or put it into the nodes",
    ),
    ("S132", "node A { a: I32 «@range» }", "`@range` needs its arguments", "write `@range(a, low..high)`"),
    ("S132", "node A { a: String «@check» }", "`@check` needs its arguments", 'write `@check(a, "pattern")`'),
    ("S132", "node A { a: I32 «@range(a, 1)» }", "`@range` takes a property and a range", RANGE),
    ("S132", "node A { a: I32 «@range(0..1)» }", "`@range` takes a property and a range", RANGE),
    (
        "S132",
        "node A { a: String «@check(a, b)» }",
        "`@check` takes a property and a pattern",
        'write `@check(property, "pattern")`',
    ),
    ("S132", "node A { a: String «@unique()» }", "`@unique` names no property", "write `@unique(first, second)`"),
    (
        "S132",
        'node A { a: String @unique(«"a"») }',
        "`@unique` expects the name of a property here, not a string",
        "write the name without quotes",
    ),
    ("S132", "node A { a: String @unique(«1») }", "`@unique` expects the name of a property here", None),
    (
        "S132",
        "node A { a: String @unique(«@src») }",
        "`@src` is not the name of a property",
        "write the name of a property",
    ),
    (
        "S132",
        "node A { } edge E: A -> A { @unique(«@from») }",
        "`@from` is not the name of a property",
        "write `src` or `dst`",
    ),
    (
        "S132",
        "node A { a: I32 b: I32 «@index(a, b)» }",
        "`@index` in a body names one property",
        "an index covers one property; write one `@index` for each",
    ),
    (
        "S133",
        "node A { a: String? «@key» }",
        "the key property `a` of `A` is nullable",
        "remove the `?` from the type of `a`",
    ),
    (
        "S133",
        "node A { a: String b: I32? «@key(a, b)» }",
        "the key property `b` of `A` is nullable",
        "remove the `?` from the type of `b`",
    ),
    (
        "S133",
        "node A { } edge E: A -> A { b: I32? «@key(src, dst, b)» }",
        "the key property `b` of `E` is nullable",
        "remove the `?` from the type of `b`",
    ),
    *(
        (
            "S134",
            f"node A {{ a: {type_} «@{what}» }}",
            f"`a` is `{type_}` and cannot be in `@{what}`",
            "blobs, vectors and lists have no identity",
        )
        for type_ in ("Blob", "Vector(2)", "[I32]")
        for what in ("key", "unique")
    ),
    (
        "S134",
        "node A { a: Blob b: I32 @unique(b, «a») }",
        "`a` is `Blob` and cannot be in `@unique`",
        "blobs, vectors and lists have no identity",
    ),
    (
        "S135",
        "node A {\n a: I32 @key\n b: I32 «@key» }",
        "`A` has a key already: (a), on line 2",
        "for one key of several properties write `@key(a, b)`",
    ),
    (
        "S135",
        "node A {\n a: I32 @key\n b: I32\n «@key(b)» }",
        "`A` has a key already: (a), on line 2",
        "for one key of several properties write `@key(a, b)`",
    ),
    ("S136", "node A { a: I32 @unique(a, «a») }", "`a` stands twice in `@unique`", "name it once"),
    ("S136", "node A { } edge E: A -> A { @key(src, dst, «@src») }", "`src` stands twice in `@key`", "name it once"),
    (
        "S137",
        "node A { } edge E: A -> A { «@key(src)» }",
        "the key of an edge names both `src` and `dst`",
        "write `@key(src, dst)`",
    ),
    (
        "S137",
        "node A { } edge E: A -> A { r: I32 «@key(r)» }",
        "the key of an edge names both `src` and `dst`",
        "write `@key(src, dst, r)`; for the rest alone there is `@unique(r)`",
    ),
    ("S138", "node A { a: String @range(«a», 0..1) }", "`@range` is for numbers, and `a` is `String`", None),
    ("S138", "node A { a: [I32] @range(«a», 0..1) }", "`@range` is for numbers, and `a` is `[I32]`", None),
    ("S139", "node A { a: I32 @range(a, «5..1») }", "the range is empty: 5 is above 1", "write `1..5`"),
    ("S139", "node A { a: I32 @range(a, «..») }", "a range needs at least one bound", RANGE),
    ("S139", "node A { a: I32 @range(a, «0.5»..1) }", "the bound 0.5 is not a whole number as `I32` is", None),
    (
        "S139",
        "node A { a: U32 @range(a, «-1»..1) }",
        "the bound -1 does not fit `U32`, which holds 0 to 4294967295",
        "leave an end open that is no bound",
    ),
    ("S139", "node A { a: F32 @range(a, 0..«1e39») }", "the bound 1e39 is too large for `F32`", None),
    ("S140", 'node A { a: I32 @check(«a», "x") }', "`@check` is for `String`, and `a` is `I32`", None),
    ("S140", 'node A { a: enum(b) @check(«a», "x") }', "`@check` is for `String`, and `a` is `enum(b)`", None),
    (
        "S141",
        'node A { a: String @check(a, «"a(?=b)"») }',
        "the pattern does not hold at character 2: look-ahead is not in the dialect",
        DIALECT,
    ),
    (
        "S141",
        'node A { a: String @check(a, «"(a"») }',
        "the pattern does not hold at character 1: this group is not closed",
        DIALECT,
    ),
    (
        "S141",
        r'node A { a: String @check(a, «"(a)\\1"») }',
        "the pattern does not hold at character 4: back-references are not in the dialect",
        DIALECT,
    ),
    (
        "S142",
        "node A { } edge E: A -> A @card(«3..1»)",
        "the least number of edges, 3, is above the most, 1",
        "write `@card(1..3)`",
    ),
    ("S142", "node A { } edge E: A -> A «@card(1)»", "`@card` takes a range", CARD),
    ("S142", "node A { } edge E: A -> A «@card»", "`@card` takes a range", CARD),
    ("S142", "node A { } edge E: A -> A @card(«..»)", "`@card` needs at least one bound", CARD),
    ("S142", "node A { } edge E: A -> A @card(«-1»..2)", "a cardinality is a whole number from 0, not -1", CARD),
    ("S142", "node A { } edge E: A -> A @card(0..«1.5»)", "a cardinality is a whole number from 0, not 1.5", CARD),
    ("S143", "node A { a: I32 @range(a, 0..1) «@range(a, 0..2)» }", "`a` has a range already", "write one range"),
    # --- S15x: annotations ---------------------------------------------------------------------------------------
    ("S150", "node A { a: I32 «@default» }", "`@default` takes one literal", "write `@default(0)`"),
    ("S150", "node A { a: I32 «@default(1, 2)» }", "`@default` takes one literal", "write `@default(0)`"),
    ("S150", "node A «@rename_from» { }", "`@rename_from` takes the old name", 'write `@rename_from("Old")`'),
    ("S150", "node A { a: I32 «@rename_from(3)» }", "`@rename_from` takes the old name", 'write `@rename_from("Old")`'),
    ("S150", "node A { a: Vector(2) «@embed» }", "`@embed` needs the property to embed", EMBED),
    (
        "S150",
        'node A { t: String a: Vector(2) @embed("t", «modle="x"») }',
        "`@embed` does not take this",
        "did you mean `model`?",
    ),
    ("S150", 'node A { t: String a: Vector(2) @embed("t", «"u"») }', "`@embed` does not take this", EMBED),
    ("S150", 'node A { t: String a: Vector(2) @embed("t", model=«3») }', "the model of `@embed` is a string", None),
    ("S150", "node A @note(«1..2») { }", "`@note` can only hold literals and `key=literal`", None),
    ("S151", "node A «@card(0..1)» { }", "`@card` is not allowed on `A`", "`@card` is for edge types"),
    (
        "S151",
        'interface A «@rename_from("B")» { }',
        "`@rename_from` is not allowed on `A`",
        "interfaces have no identity: rename them freely",
    ),
    ("S151", "node A «@key(a)» { a: I32 }", "`@key` is not allowed on `A` itself", "write it between the braces"),
    ("S151", "node A «@default(1)» { }", "`@default` is not allowed on `A` itself", "write it after a property"),
    ("S151", "node A { a: I32 «@card(0..1)» }", "`@card` does not belong on a property", "it follows an edge's ends"),
    (
        "S152",
        'node A { t: String a: String «@embed("t")» }',
        "`@embed` fills a vector, and `a` is `String`",
        "write a type such as `Vector(384)`",
    ),
    (
        "S153",
        'node A { text: String a: Vector(2) @embed(«"txt"») }',
        "`A` has no property `txt` to embed",
        "did you mean `text`?",
    ),
    (
        "S153",
        'node A { a: Vector(2) @embed(«"zzz"») }',
        "`A` has no property `zzz` to embed",
        "name a `String` property of this type",
    ),
    (
        "S153",
        'node A { n: I32 a: Vector(2) @embed(«"n"») }',
        "`a` cannot be embedded from `n`: it is `I32`, not `String`",
        "name a `String` property of this type",
    ),
    ("S154", 'node A { a: I32 @default(«"1"») }', 'the default "1" does not fit `I32`: it is not a whole number', None),
    ("S154", "node A { a: I32 @default(«1.0») }", "the default 1.0 does not fit `I32`: it is not a whole number", None),
    (
        "S154",
        "node A { a: I32 @default(«2147483648») }",
        "the default 2147483648 does not fit `I32`: the type holds -2147483648 to 2147483647",
        None,
    ),
    (
        "S154",
        "node A { a: U64 @default(«-1») }",
        "the default -1 does not fit `U64`: the type holds 0 to 18446744073709551615",
        None,
    ),
    (
        "S154",
        "node A { a: F32 @default(«1e39») }",
        "the default 1e39 does not fit `F32`: it is too large for the type",
        None,
    ),
    ("S154", "node A { a: F64 @default(«true») }", "the default true does not fit `F64`: it is not a number", None),
    ("S154", "node A { a: Bool @default(«1») }", "the default 1 does not fit `Bool`: write `true` or `false`", None),
    (
        "S154",
        "node A { a: String @default(«word») }",
        "the default word does not fit `String`: it is not a string",
        'write `@default("word")`',
    ),
    (
        "S154",
        "node A { a: String? @default(«null») }",
        "the default null does not fit `String`: null is what a nullable property has without a default",
        "remove `@default`",
    ),
    (
        "S154",
        "node A { a: enum(active, gone) @default(«actve») }",
        "the default actve does not fit `enum(active, gone)`: it is not one of the values",
        "did you mean `active`?",
    ),
    (
        "S154",
        'node A { a: Date @default(«"2026-02-30"») }',
        'the default "2026-02-30" does not fit `Date`: there is no such day',
        None,
    ),
    (
        "S154",
        'node A { a: Date @default(«"2.1.2026"») }',
        'the default "2.1.2026" does not fit `Date`: a date is written `YYYY-MM-DD`',
        None,
    ),
    (
        "S154",
        'node A { a: DateTime @default(«"2026-01-02T03:04:05"») }',
        'the default "2026-01-02T03:04:05" does not fit `DateTime`: a date and time is written `YYYY-MM-DDTHH:MM:SSZ`, '
        "with `Z` or an offset such as `+02:00`",
        None,
    ),
    *(
        (
            "S155",
            f"node A {{ a: {type_} «@default(1)» }}",
            f"a property of type `{type_}` takes no default",
            "make it nullable instead",
        )
        for type_ in ("Blob", "Vector(2)", "[I32]")
    ),
    ("S156", "node A { a: I32 «@default(7)» @range(a, 0..5) }", "the default of `a` is outside its range", None),
    (
        "S156",
        'node A { a: String «@default("x1")» @check(a, "[a-z]+") }',
        "the default of `a` does not match `[a-z]+`",
        None,
    ),
    ("S157", "node A { a: I32 @index «@index» }", "`@index` stands twice on `a`", "remove one of them"),
    (
        "S157",
        "node A { } edge E: A -> A @card(0..1) «@card(0..2)»",
        "`@card` stands twice on `E`",
        "remove one of them",
    ),
    # --- S16x: interfaces ----------------------------------------------------------------------------------------
    (
        "S160",
        "interface I { a: I32 }\nnode A implements I { «a»: I64 }",
        "`a` is `I32` in `I` (line 1) and `I64` in `A` (line 2)",
        "a property can be stated again only with the same type",
    ),
    (
        "S160",
        "interface I { a: I32 }\nnode A implements I { «a»: I32? }",
        "`a` is `I32` in `I` (line 1) and `I32?` in `A` (line 2)",
        "a property can be stated again only with the same type",
    ),
    (
        "S160",
        "interface I { a: I32 }\ninterface J { a: String }\nnode A implements I, «J» { }",
        "`a` is `I32` in `I` (line 1) and `String` in `J` (line 2)",
        "a property can be stated again only with the same type",
    ),
]

OLD = "node Old { a: I32 b: I32 } node Gone { } edge Knows: Old -> Old"
RENAMES = [
    (
        "S170",
        'node Old { a: I32 b: I32 } node New @rename_from(«"Old"») { }',
        "`New` cannot be renamed from `Old`: that node type is still declared",
        "remove the old declaration, or the annotation",
    ),
    (
        "S170",
        'node Old { a: I32 b: I32 c: I32 @rename_from(«"a"») }',
        "`c` cannot be renamed from `a`: that property is still declared",
        "remove the old declaration, or the annotation",
    ),
    (
        "S170",
        'node Old { a: I32 b: I32 } edge KNOWS: Old -> Old edge Met: Old -> Old @rename_from(«"Knows"»)',
        "`Met` cannot be renamed from `Knows`: that edge type is still declared",
        "remove the old declaration, or the annotation",
    ),
    (
        "S171",
        'node N @rename_from("Old") { } node M @rename_from(«"Old"») { }',
        "`N` and `M` are both renamed from `Old`",
        "only one of them can be it",
    ),
]
WARNINGS = [
    (
        "S172",
        'node Old { a: I32 b: I32 } node New @rename_from(«"Gon"») { }',
        "the accepted schema has no node type `Gon`, so `New` is new and nothing is renamed",
        "did you mean `Gone`?",
    ),
    (
        "S172",
        'node Old { a: I32 b: I32 z: I32 @rename_from(«"y"») }',
        "the accepted schema has no property `y`, so `z` is new and nothing is renamed",
        None,
    ),
    (
        "S174",
        "node Old { a: I32 b: I32 } edge E: Old -> Old { «from»: Date until: Date }",
        "`from` is an end of `E` where queries insert edges, so they cannot set this property",
        "a name such as `valid_from` can be set",
    ),
    (
        "S173",
        "node A { a: [I32] «@index» }",
        "`a` is `[I32]`: lists and blobs have no index, so none is built",
        "remove `@index`",
    ),
    (
        "S173",
        "node A { a: Blob «@index(a)» }",
        "`a` is `Blob`: lists and blobs have no index, so none is built",
        "remove `@index`",
    ),
]


def marked(text: str) -> tuple[str, int, int]:
    """The source without its marks, and the offsets they stood at."""
    start = text.index("«")
    end = text.index("»") - 1
    return text.replace("«", "").replace("»", ""), start, end


def place(source: str, offset: int) -> tuple[int, int]:
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


@pytest.mark.parametrize(("code", "text", "message", "hint"), ERRORS)
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
    tested = {case[0] for case in (*ERRORS, *RENAMES, *WARNINGS)} | {"S106", "S107", "S108"}
    assert tested == set(SCHEMA_CODES)
