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
from typing import Any, Literal, get_args

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, NotFound

_KEYS = {"actor", "servers", "clusters", "profiles", "profile", "output"}
_PROFILE_KEYS = {"server", "graph", "store", "cluster", "actor", "output"}

Shape = Literal["json", "jsonl", "csv", "table", "kv"]
"""How rows are written."""

OUTPUT_VARIABLE = "OMNIGRAPH_OUTPUT"


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
    clusters: Mapping[str, str] = field(default_factory=dict)
    output: Shape | None = None

    def of_profile(self, key: str, profile: str | None) -> str | None:
        """What the profile says: the one that is named, or the default one."""
        chosen = profile or self.profile
        found = self._profile(chosen).get(key) if chosen is not None else None
        return str(found) if found else None

    def acting(self, given: str | None, profile: str | None) -> str | None:
        """Who asks: as given by flag or environment, else by the profile, else by the file."""
        return given or self.of_profile("actor", profile) or self.actor

    def shape(self, profile: str | None) -> Shape:
        """How rows are written where no flag says it: by the environment, the profile, the file; else as a table."""
        kept = self.of_profile("output", profile) or self.output
        return checked_shape(os.environ.get(OUTPUT_VARIABLE) or kept or "table", OUTPUT_VARIABLE)

    def cluster_folder(self, named: str | None, profile: str | None = None) -> Path:
        """The folder of a cluster: a path, the name of one in the configuration, that of the profile, or here."""
        chosen = named
        if chosen is None:
            chosen = self.of_profile("cluster", profile)
        if chosen is None:
            return Path()
        if chosen in self.clusters and not Path(chosen).is_dir():
            return Path(self.clusters[chosen]).expanduser()
        return Path(chosen)

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
        found = self._profile(chosen)
        if found.get("server"):
            return self.remote(found["server"], graph or found.get("graph"))
        return found.get("store")

    def _profile(self, name: str) -> Mapping[str, Any]:
        found = self.profiles.get(name)
        if found is None:
            hint = did_you_mean(name, self.profiles) or "`omnigraph profile list` shows those there are"
            raise NotFound(f"the configuration has no profile `{name}`; {hint}")
        return found

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
    from omnigraph.yaml_text import read_yaml

    content = read_yaml(path, "configuration") or {}
    if not isinstance(content, dict):
        raise BadRequest(f"{path} may hold {', '.join(sorted(_KEYS))}, and is no mapping of them")
    for key in sorted(content.keys() - _KEYS, key=str):
        raise BadRequest(f"{path}: unknown key `{key}`; it may hold {', '.join(sorted(_KEYS))}, and no tokens")
    servers, profiles = content.get("servers") or {}, content.get("profiles") or {}
    for name, server in servers.items():
        if not isinstance(server, dict) or "url" not in server or server.keys() - {"url", "graph"}:
            raise BadRequest(f"{path}: the server `{name}` has a url, and may have a graph; its token goes by `login`")
    for name, profile in profiles.items():
        if not isinstance(profile, dict) or profile.keys() - _PROFILE_KEYS:
            raise BadRequest(f"{path}: the profile `{name}` may hold {', '.join(sorted(_PROFILE_KEYS))}")
        if "output" in profile:
            checked_shape(profile["output"], f"{path}: the output of the profile `{name}`")
    clusters = content.get("clusters") or {}
    if not isinstance(clusters, dict) or not all(isinstance(place, str) for place in clusters.values()):
        raise BadRequest(f"{path}: clusters is a mapping of names to the folders of their cluster.yaml")
    output = content.get("output")
    shape = checked_shape(output, f"{path}: output") if output is not None else None
    return UserConfig(content.get("actor"), servers, profiles, content.get("profile"), clusters, shape)


def checked_shape(text: Any, source: str) -> Shape:
    """The way of writing rows that a text names."""
    for shape in get_args(Shape):
        if text == shape:
            return shape  # type: ignore[no-any-return]  # one of the literals
    raise BadRequest(f"{source} is one of {', '.join(get_args(Shape))}, not `{text}`")


def write_user_config(config: UserConfig) -> None:
    """Replace the configuration."""
    import yaml

    content = {
        "actor": config.actor,
        "profile": config.profile,
        "output": config.output,
        "servers": {name: dict(server) for name, server in config.servers.items()},
        "clusters": dict(config.clusters),
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
