"""`omnigraph policy …`: validate, test, explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.options import Json
from omnigraph.cli.show.output import Output
from omnigraph.notebook import counted
from omnigraph.policy.actions import Action

policy = typer.Typer(help="Check a policy file, test it, and ask why it decides as it does.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The policy file (YAML).")]


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(policy, name="policy")


@policy.command("validate")
def validate(
    file: File,
    cedar: Annotated[bool, typer.Option("--cedar", help="Print the Cedar policies that it compiles to.")] = False,
    json: Json = False,
) -> None:
    """Check a policy file: its shape, its groups and actions, and that it compiles to Cedar. All problems at once."""
    from omnigraph.policy.decide_access import read_policy

    found = read_policy(file)
    bundle, out = found.bundle, Output(json=json)
    if json:
        out.document(
            {
                "valid": True,
                "rules": [rule.id for rule in bundle.rules],
                "groups": {name: sorted(members) for name, members in sorted(bundle.groups.items())},
                "protected_branches": sorted(bundle.protected_branches),
                "cedar": found.cedar,
            }
        )
        return
    if cedar:
        out.say(found.cedar)
        return
    rules, actors = counted(len(bundle.rules), "rule"), counted(len(bundle.actors), "actor")
    protected = ", ".join(sorted(bundle.protected_branches)) or "none"
    out.say(f"{file} is valid: {rules} for {actors}; protected branches: {protected}")


@policy.command("test")
def run_tests(
    file: File,
    cases: Annotated[Path, typer.Option("--cases", "-c", help="A file of cases (YAML).")],
    json: Json = False,
) -> None:
    """Ask a policy the questions of a file and compare the answers. Exits with 1 when one differs."""
    from omnigraph.policy.cases import read_cases, run_cases
    from omnigraph.policy.decide_access import read_policy

    outcomes = run_cases(read_policy(file), read_cases(cases))
    failed = [outcome for outcome in outcomes if not outcome.passed]
    out = Output(json=json)
    if json:
        out.document({"passed": not failed, "cases": [outcome.to_json() for outcome in outcomes]})
    else:
        rows = [
            (
                "ok" if outcome.passed else "FAILED",
                outcome.case.id,
                outcome.case.actor,
                outcome.case.action.value,
                outcome.case.branch or outcome.case.target_branch,
                "allow" if outcome.decision.allowed else "deny",
                ", ".join(outcome.decision.rules) or None,
            )
            for outcome in outcomes
        ]
        out.table(("", "case", "actor", "action", "branch", "decision", "rule"), rows, empty="no cases")
        out.say(f"{counted(len(failed), 'case')} of {len(outcomes)} failed" if failed else "all cases hold")
    if failed:
        raise typer.Exit(1)


@policy.command("explain")
def explain(
    file: File,
    actor: Annotated[str, typer.Option("--actor", help="Who asks.")],
    action: Annotated[Action, typer.Option("--action", help="What for.")],
    branch: Annotated[str | None, typer.Option("--branch", "-b", help="On, or to, which branch.")] = None,
    json: Json = False,
) -> None:
    """Say whether an actor may do something, and which rule decides it. Exits with 0 either way."""
    from omnigraph.policy.cases import place_of
    from omnigraph.policy.decide_access import read_policy

    found = read_policy(file)
    decision = found.decide(actor, action, **place_of(action, branch))
    groups = sorted(name for name, members in found.bundle.groups.items() if actor in members)
    out = Output(json=json)
    if json:
        asked = {"actor": actor, "action": action.value, "branch": branch, "groups": groups}
        out.document({**asked, **decision.to_json()})
        return
    word = "allowed" if decision.allowed else "denied"
    why = f"by rule {', '.join(decision.rules)}" if decision.rules else "no rule allows it"
    kind = "" if branch is None else f" on {'protected ' if branch in found.bundle.protected_branches else ''}{branch}"
    out.say(f"{word}: {actor} ({', '.join(groups) or 'in no group'}) {action.value}{kind}, {why}")
