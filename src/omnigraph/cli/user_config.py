"""Who I am and which servers I use: `~/.omnigraph/config.yaml`, and tokens in a file that nobody else can read.

Precedence: a flag, the environment, the profile, the file, the default.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, NotFound

_KEYS = {"actor", "servers", "profiles", "profile"}
_PROFILE_KEYS = {"server", "graph", "store"}


@dataclass(frozen=True, slots=True)
class RemoteTarget:
    """A graph of a server. The token is looked up when it is needed, and kept nowhere."""

    url: str
    graph: str | None = None
    name: str | None = None

    @property
    def shown(self) -> str:
        """How messages name it."""
        return f"{self.url}/graphs/{self.graph}" if self.graph else self.url

    def token(self) -> str | None:
        """The token for this server: from the environment, or from what `login` kept."""
        if self.name is None:
            return os.environ.get("OMNIGRAPH_TOKEN") or None
        return os.environ.get(token_variable(self.name)) or read_credentials().get(self.name)


@dataclass(frozen=True, slots=True)
class UserConfig:
    """What the file says."""

    actor: str | None = None
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    profile: str | None = None

    def target(
        self, named: str | None, server: str | None, graph: str | None, profile: str | None
    ) -> RemoteTarget | str | None:
        """What a command is about: a graph of a server, the URI of a store, or nothing that was named."""
        if named is not None and server is not None:
            raise BadRequest(f"{named} is a store and --server {server} a server: name one of the two")
        if named is not None:
            return named
        if server is not None:
            return self.remote(server, graph)
        chosen = profile or self.profile
        if chosen is None:
            return None
        found = self.profiles.get(chosen)
        if found is None:
            hint = did_you_mean(chosen, self.profiles) or "`omnigraph profile list` shows those there are"
            raise NotFound(f"the configuration has no profile `{chosen}`; {hint}")
        if found.get("server"):
            return self.remote(found["server"], graph or found.get("graph"))
        return found.get("store")

    def remote(self, server: str, graph: str | None = None) -> RemoteTarget:
        """A server by its URL, or by its name in the configuration."""
        if server.startswith(("http://", "https://")):
            name = next((name for name, known in self.servers.items() if known.get("url") == server.rstrip("/")), None)
            return RemoteTarget(server.rstrip("/"), graph, name)
        found = self.servers.get(server)
        if found is None:
            hint = did_you_mean(server, self.servers) or "give its URL, or add it with `omnigraph login`"
            raise NotFound(f"the configuration has no server `{server}`; {hint}")
        return RemoteTarget(str(found["url"]).rstrip("/"), graph or found.get("graph"), server)


def folder() -> Path:
    """Where the configuration of this user lies."""
    return Path.home() / ".omnigraph"


def read_user_config() -> UserConfig:
    """The configuration; an empty one where there is no file, or no home to look for it."""
    try:
        path = folder() / "config.yaml"
    except RuntimeError:
        return UserConfig()
    if not path.exists():
        return UserConfig()
    from omnigraph.policy.yaml_text import read_yaml

    content = read_yaml(path, "configuration") or {}
    if not isinstance(content, dict) or content.keys() - _KEYS:
        raise BadRequest(f"{path} may hold {', '.join(sorted(_KEYS))}, and no tokens")
    servers, profiles = content.get("servers") or {}, content.get("profiles") or {}
    for name, server in servers.items():
        if not isinstance(server, dict) or "url" not in server or server.keys() - {"url", "graph"}:
            raise BadRequest(f"{path}: the server `{name}` has a url, and may have a graph; its token goes by `login`")
    for name, profile in profiles.items():
        if not isinstance(profile, dict) or profile.keys() - _PROFILE_KEYS:
            raise BadRequest(f"{path}: the profile `{name}` may hold {', '.join(sorted(_PROFILE_KEYS))}")
    return UserConfig(content.get("actor"), servers, profiles, content.get("profile"))


def write_user_config(config: UserConfig) -> None:
    """Replace the configuration."""
    import yaml

    content = {
        "actor": config.actor,
        "profile": config.profile,
        "servers": {name: dict(server) for name, server in config.servers.items()},
        "profiles": {name: dict(profile) for name, profile in config.profiles.items()},
    }
    folder().mkdir(mode=0o700, exist_ok=True)
    text = yaml.safe_dump({key: value for key, value in content.items() if value}, sort_keys=True)
    (folder() / "config.yaml").write_text(text, encoding="utf-8")


def read_credentials() -> dict[str, str]:
    """The tokens that `login` kept. A file that others can read is refused."""
    path = folder() / "credentials.json"
    if not path.exists():
        return {}
    if path.stat().st_mode & 0o077:
        raise BadRequest(f"{path} can be read by others: make it private (chmod 600), or run `omnigraph login` again")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise BadRequest(f"{path} is damaged; run `omnigraph login` again") from None
    return found if isinstance(found, dict) else {}


def write_credentials(tokens: Mapping[str, str]) -> None:
    """Keep tokens where only this user can read them."""
    folder().mkdir(mode=0o700, exist_ok=True)
    path = folder() / "credentials.json"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        json.dump(dict(tokens), file)


def token_variable(server: str) -> str:
    """The variable with the token for a server."""
    return "OMNIGRAPH_TOKEN_" + re.sub(r"[^A-Z0-9]", "_", server.upper())
