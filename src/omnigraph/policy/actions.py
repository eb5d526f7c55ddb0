"""What a policy allows or not: the actions, and which branch each of them is about."""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """What an actor asks to do. All but `graph_list` are about one graph."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    INVOKE_QUERY = "invoke_query"
    ADMIN = "admin"
    GRAPH_LIST = "graph_list"


class Scope(StrEnum):
    """Which branches a rule is about."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


ON_A_BRANCH = frozenset({Action.READ, Action.EXPORT, Action.CHANGE})
"""Actions on what a branch holds: `branch_scope` narrows them."""

TO_A_BRANCH = frozenset({Action.SCHEMA_APPLY, Action.BRANCH_CREATE, Action.BRANCH_DELETE, Action.BRANCH_MERGE})
"""Actions whose outcome is another state of a branch: `target_branch_scope` narrows them."""

OF_THE_SERVER = frozenset({Action.GRAPH_LIST})
"""Actions on a server as a whole. A rule holds these or those of a graph, never both."""
