"""Cases for test_codes: how a schema is written, its names and its types (S10x to S12x)."""

from __future__ import annotations

TYPES = "String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime"

FORM = [
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
]
