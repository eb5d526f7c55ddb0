"""Cases for test_codes: constraints, annotations, interfaces and renames (S13x to S17x)."""

from __future__ import annotations

DIALECT = "the dialect is the part of RE2 that all engines share"
EDGES_ONLY = "edge bodies take `@key`, `@unique` and `@index`"
EMBED = 'write `@embed("source")` or `@embed("source", model="name")`'
CARD = "write `@card(0..1)`, `@card(1..)` or `@card(..3)`"
RANGE = "write `@range(property, low..high)`; either end may be left out"

MEANING = [
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
        "the default 1e39 does not fit `F32`: it is too large for 32 bits",
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
