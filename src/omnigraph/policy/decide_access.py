"""An installed policy: asked at the head of every call, and a call that it cannot answer for is refused."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from typing import Any

from omnigraph.errors import BadRequest, PolicyDenied
from omnigraph.policy.actions import Action
from omnigraph.policy.bundle import Bundle, read_bundle
from omnigraph.policy.cedar import READ_FOR_EVERYBODY, checked_policies, compiled, entities, request

_logger = logging.getLogger("omnigraph.policy")


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy says to one question. `rules` made it; none when it is the default."""

    allowed: bool
    rules: tuple[str, ...] = ()
    failure: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"allowed": self.allowed, "rules": list(self.rules), "failure": self.failure}


class Policy:
    """The rules of one graph. Immutable; another bundle is another Policy. Safe to share between threads."""

    def __init__(self, bundle: Bundle | None, *, cedar: str | None = None) -> None:
        self.bundle = bundle or Bundle({}, frozenset(), ())
        self.cedar = compiled(self.bundle) if cedar is None else cedar
        try:
            self._policies = checked_policies(self.cedar)
        except ValueError as error:
            raise BadRequest(f"the policy does not compile to Cedar: {error}") from None
        self._entities = _parsed_entities(self.bundle)
        self._decided = lru_cache(maxsize=4096)(self._ask)

    def __reduce__(self) -> tuple[Any, ...]:
        return _policy_again, (self.bundle, self.cedar)

    def __repr__(self) -> str:
        return f"<Policy of {len(self.bundle.rules)} rules>"

    def decide(
        self, actor: str | None, action: Action, *, branch: str | None = None, target: str | None = None
    ) -> Decision:
        """Whether `actor` may do `action` on a branch (`branch`), or to one (`target`)."""
        if actor is None:
            return Decision(False, failure="no actor was given")
        protected = self.bundle.protected_branches
        return self._decided(
            actor,
            action,
            None if branch is None else branch in protected,
            None if target is None else target in protected,
        )

    def require(
        self, actor: str | None, action: Action, *, branch: str | None = None, target: str | None = None
    ) -> None:
        """`PolicyDenied` unless the policy allows it."""
        decision = self.decide(actor, action, branch=branch, target=target)
        if decision.allowed:
            return
        place = branch if branch is not None else target
        where = f" on branch `{place}`" if place is not None else ""
        if actor is None:
            raise PolicyDenied(
                f"{action.value}{where} needs an actor, since the graph has a policy: name one (actor=…, --as)",
                action=action.value,
            )
        why = (
            f"the policy cannot be evaluated ({decision.failure}), so everything is refused"
            if decision.failure
            else "no rule of the policy allows it; `omnigraph policy explain` shows what is allowed"
        )
        raise PolicyDenied(f"`{actor}` may not {action.value}{where}: {why}", action=action.value, actor=actor)

    def _ask(
        self, actor: str, action: Action, branch_protected: bool | None, target_protected: bool | None
    ) -> Decision:
        import cedarpy

        try:
            asked = request(actor, action, branch_protected=branch_protected, target_protected=target_protected)
            answer = cedarpy.is_authorized(asked, self._policies, self._entities)
            if answer.diagnostics.errors or answer.decision is cedarpy.Decision.NoDecision:
                raise RuntimeError("; ".join(str(error) for error in answer.diagnostics.errors) or "no decision")
        except Exception as error:
            # Whatever goes wrong in there, the answer is no.
            _logger.error("the policy cannot be evaluated for %s: %s", action.value, error)
            return Decision(False, failure=f"{type(error).__name__}")
        rules = tuple(sorted(answer.diagnostics.id_annotations_by_reason.values()))
        return Decision(answer.allowed, rules)


def read_policy(path: str | PathLike[str]) -> Policy:
    """The policy of a YAML file."""
    return Policy(read_bundle(path))


def as_policy(given: Policy | Bundle | str | PathLike[str] | None) -> Policy | None:
    """A policy in any form that a caller gives one: made already, a bundle, or the path of a file."""
    if given is None or isinstance(given, Policy):
        return given
    return Policy(given) if isinstance(given, Bundle) else read_policy(given)


def only_reading() -> Policy:
    """The policy of a server that knows its actors and was given none: everybody reads, nobody does more."""
    return Policy(None, cedar=READ_FOR_EVERYBODY)


def _policy_again(bundle: Bundle, cedar: str) -> Policy:
    return Policy(bundle, cedar=cedar)


def _parsed_entities(bundle: Bundle) -> Any:
    import json

    import cedarpy

    return cedarpy.Entities.from_json_str(json.dumps(entities(bundle)))
