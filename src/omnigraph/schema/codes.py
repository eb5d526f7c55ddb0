"""Every code of the schema language with its meaning: one table, from which the documentation is made."""

from __future__ import annotations

from collections.abc import Mapping

SCHEMA_CODES: Mapping[str, str] = {
    # How it is written.
    "S100": "Something else was expected here.",
    "S101": "A character that the language does not have.",
    "S102": "A string that is not closed on its line.",
    "S103": "A comment that is not closed.",
    "S104": "An escape that strings do not have.",
    "S105": "A number that is too large to be meant.",
    "S106": "The source, or something in it, is too long.",
    "S107": "Types are nested too deeply.",
    "S108": "More errors were found than are shown.",
    "S109": "An annotation that does not follow the property it belongs to.",
    # Names.
    "S110": "The name of a type does not start with an upper-case letter.",
    "S111": "The name of a property does not start with a lower-case letter or `_`.",
    "S112": "The name is reserved.",
    "S113": "Two declarations have one name.",
    "S114": "Two properties of a type have one name.",
    "S115": "Two declarations differ only by case, and edge types are looked up without regard to case.",
    "S116": "Two properties of a type differ only by case.",
    "S117": "The end of an edge is not a declared node type.",
    "S118": "The interface is not declared.",
    "S119": "An interface is implemented twice.",
    # Types.
    "S120": "There is no such type.",
    "S121": "The dimension of a vector is missing or out of bounds.",
    "S122": "A list of something that is not a scalar.",
    "S123": "An enum without values.",
    "S124": "The type takes no size.",
    # Constraints.
    "S130": "The constraint names a property that the type does not have.",
    "S131": "The constraint is not allowed here.",
    "S132": "The constraint is not written as it should be.",
    "S133": "A key property is nullable.",
    "S134": "A blob, vector or list cannot be in a key or be unique.",
    "S135": "The type has a key already.",
    "S136": "A name stands twice in one constraint.",
    "S137": "The key of an edge does not name both `src` and `dst`.",
    "S138": "A range on a property that is not a number.",
    "S139": "The bounds of a range do not fit the property or each other.",
    "S140": "A check on a property that is not a `String`.",
    "S141": "The pattern of a check is not in the dialect.",
    "S142": "The bounds of a cardinality do not make sense.",
    "S143": "The constraint is given twice.",
    # Annotations.
    "S150": "The annotation is not written as it should be.",
    "S151": "The annotation is not allowed here.",
    "S152": "An embedding on a property that is not a vector.",
    "S153": "The source of an embedding is not a `String` property of the same type.",
    "S154": "The default does not fit the type of the property.",
    "S155": "A property of this type takes no default.",
    "S156": "The default breaks a constraint of the property.",
    "S157": "The annotation is given twice.",
    # Interfaces and renames.
    "S160": "Two declarations of one property do not have the same type.",
    "S170": "The old name of a rename is still declared.",
    "S171": "Two declarations are renamed from one.",
    "S172": "Warning: the old name of a rename is not in the accepted schema, so nothing is renamed.",
    "S173": "Warning: an index that is never built, since lists and blobs have none.",
    "S174": "Warning: a property of an edge that queries cannot set, since `from` and `to` are its ends there.",
}

MIGRATION_CODES: Mapping[str, str] = {
    # Data that leaves the graph. A soft drop is carried out with the code as a warning; so is a hard one.
    "OG-DS-102": "A node type with rows is dropped.",
    "OG-DS-103": "An edge type with rows is dropped.",
    "OG-DS-104": "A property with values is dropped.",
    # Changes that rows already there cannot follow. They are refused.
    "OG-MF-103": "A required property without a default is added to a type with rows.",
    "OG-MF-104": "A nullable property becomes required, and rows have no value.",
    "OG-MF-105": "The ends of an edge type with rows change.",
    "OG-MF-106": "The type of a property becomes narrower, or another one, or values or ids would not be kept.",
    "OG-MF-107": "The key of a type with rows is added or changed: its ids are derived from it.",
    # Constraints that rows already there break. They are refused when the data has been looked at.
    "OG-AC-101": "Rows share a tuple that becomes unique.",
    "OG-AC-102": "Values lie outside an added or narrowed range.",
    "OG-AC-103": "Values do not match an added check.",
    "OG-AC-104": "Nodes have more or fewer edges than an added or narrowed cardinality allows.",
}
