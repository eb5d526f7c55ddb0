"""Every code of a query finding, with its one meaning. The documentation prints this table."""

from __future__ import annotations

from collections.abc import Mapping

PARSE_ERROR = "Q000"
UNKNOWN_TYPE = "T1"
UNKNOWN_PROPERTY = "T2"
BLOB_OR_LIST_MISUSE = "T3"
UNKNOWN_EDGE = "T4"
ENDPOINT_TYPE = "T5"
UNBOUND_VARIABLE = "T6"
OPERAND_TYPE = "T7"
AGGREGATE_ARGUMENT = "T8"
AGGREGATE_PLACE = "T9"
UNKNOWN_MUTATION_TYPE = "T10"
UNKNOWN_MUTATION_PROPERTY = "T11"
MISSING_ASSIGNMENT = "T12"
DUPLICATE_ASSIGNMENT = "T13"
UNDECLARED_PARAMETER = "T14"
TRAVERSAL_BOUNDS = "T15"
PARAMETER_DECLARATION = "T16"
NEAREST_WITHOUT_LIMIT = "T17"
FUNCTION_ARGUMENTS = "T18"
SEARCH_ARGUMENT = "T19"
LIMIT_VALUE = "T20"
RRF_WITHOUT_LIMIT = "T21"
UNDIRECTED_UNLIKE_ENDS = "T22"
EDGE_BINDING = "T23"
BLOB_AS_VALUE = "T24"
FIXED_PROPERTY = "T25"
DUPLICATE_COLUMN = "T26"
UNRELATED_NOT_BLOCK = "T27"
EXPRESSION_SIZE = "T28"
STAGE_COLUMN = "T29"
PATH_USE = "T30"
WALK_CONDITION = "T31"
BAD_PATTERN = "T32"
PARAMETER_DEFAULT = "T33"
MATCHED_TARGET = "T34"
ROWS_PARAMETER = "T35"
NO_FITTING_EDGE = "T36"
DURATION_PLACE = "T37"
MISPLACED_SEARCH = "T38"
NOT_BOOLEAN = "T41"
UNNAMED_COLUMN = "T43"
NOT_IN_MUTATION = "T44"
CONSTANT_NEEDED = "T45"
UNSET_PROPERTY = "L201"
MUTATION_WITHOUT_PARAMETERS = "L202"
WORST_FIRST = "L203"

MEANINGS: Mapping[str, str] = {
    PARSE_ERROR: "The text does not parse.",
    UNKNOWN_TYPE: "A match clause or a parameter names a type that does not exist.",
    UNKNOWN_PROPERTY: "The bound type has no property of that name.",
    BLOB_OR_LIST_MISUSE: "A blob or a list stands where a single value is needed, or a single value where a list is.",
    UNKNOWN_EDGE: "A traversal names an edge type that does not exist.",
    ENDPOINT_TYPE: "A variable has another type than the edge or the binding needs.",
    UNBOUND_VARIABLE: "A variable is not bound in the match block, or a name is no alias.",
    OPERAND_TYPE: "An operand, literal or assigned value has the wrong type or does not fit it.",
    AGGREGATE_ARGUMENT: "An aggregate cannot take this argument.",
    AGGREGATE_PLACE: "An aggregate stands where none may, or a value that is no group key is used after grouping.",
    UNKNOWN_MUTATION_TYPE: "A mutation names a type that does not exist.",
    UNKNOWN_MUTATION_PROPERTY: "A mutation names a property that its type does not have.",
    MISSING_ASSIGNMENT: "A required property (or an end of an edge) is not given or is null.",
    DUPLICATE_ASSIGNMENT: "A property is given twice.",
    UNDECLARED_PARAMETER: "A value uses a parameter that the query does not declare.",
    TRAVERSAL_BOUNDS: "The bounds of a traversal are not finite, below one, reversed, or not possible for the edge.",
    PARAMETER_DECLARATION: "A parameter is declared twice, has the name of a bound variable, or a type it cannot have.",
    NEAREST_WITHOUT_LIMIT: "`nearest` needs a `limit`.",
    FUNCTION_ARGUMENTS: "The function does not exist or cannot take these arguments.",
    SEARCH_ARGUMENT: "A search function needs a property or a query of another type.",
    LIMIT_VALUE: "`limit` or `offset` needs a non-negative integer or an integer parameter.",
    RRF_WITHOUT_LIMIT: "`rrf` needs a `limit`.",
    UNDIRECTED_UNLIKE_ENDS: "An undirected traversal over an edge whose ends have different types.",
    EDGE_BINDING: "An edge variable is used as a node, bound twice, bound over several hops, or bound beside a path.",
    BLOB_AS_VALUE: "A blob cannot be returned, sorted or aggregated as a value.",
    FIXED_PROPERTY: "A key property, an id or an end of an edge cannot be set here.",
    DUPLICATE_COLUMN: "Two result columns have one name.",
    UNRELATED_NOT_BLOCK: "A `not` or `exists` block uses no variable that is bound outside of it.",
    EXPRESSION_SIZE: "An expression becomes too large when its aliases are put in.",
    STAGE_COLUMN: "`with` lists variables and named values; this is neither, or renames a variable.",
    PATH_USE: "A path is no value: `hops`, `nodes` and `edges` look into it, and into nothing else.",
    WALK_CONDITION: "The condition of a traversal looks at something else than the edge, parameters and constants.",
    BAD_PATTERN: "The pattern of `matches` is not in the dialect of regular expressions.",
    PARAMETER_DEFAULT: "The default of a parameter is no literal of its type.",
    MATCHED_TARGET: "`update $x` or `delete $x` needs a variable of the match that stands for entities of one type.",
    ROWS_PARAMETER: "`insert … from` needs a parameter that holds rows of that type.",
    NO_FITTING_EDGE: "No edge type leads from the one end of the traversal to the other.",
    DURATION_PLACE: "`days(…)` and the like stand behind `+` or `-` beside a Date or a DateTime only.",
    MISPLACED_SEARCH: "A search function where it has no meaning.",
    NOT_BOOLEAN: "A Boolean is needed here.",
    UNNAMED_COLUMN: "A computed value or a literal in `return` or `with` needs an alias.",
    NOT_IN_MUTATION: "An aggregate or a search function in a mutation.",
    CONSTANT_NEEDED: "A property or an entity stands where a literal or a parameter is needed.",
    UNSET_PROPERTY: "A nullable property that no update sets.",
    MUTATION_WITHOUT_PARAMETERS: "A mutation without parameters: it does the same each time.",
    WORST_FIRST: "The direction that is written behind a ranking in `order` sorts the worst match first.",
}
