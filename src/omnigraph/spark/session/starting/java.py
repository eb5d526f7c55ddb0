"""Find the Java that Spark would start, and say clearly what to install when there is none or it is too old.

Spark's own failure is a shell script's complaint and a gateway that exited; here nothing is started to find out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from omnigraph.errors import SparkUnavailable

OLDEST_JAVA = 17
_OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Where options for Java may come from, beside Spark's own settings."""
_COLLECTOR = re.compile(r"-XX:[+-]Use\w+GC\b")
_INSTALL = (
    "Install a JDK, 17 or newer (Debian, Ubuntu: `apt-get install default-jre-headless`; Fedora: "
    "`dnf install java-latest-openjdk-headless`; macOS: `brew install openjdk`), or point JAVA_HOME at one. "
    "Small work needs no Java: engine='local' never starts Spark."
)


def require_java(environment: Mapping[str, str] | None = None) -> int:
    """The major version of the Java that Spark will start; `SparkUnavailable` when it cannot work."""
    env = os.environ if environment is None else environment
    java = find_java(env)
    if java is None:
        home = env.get("JAVA_HOME")
        where = f"JAVA_HOME is {home}, and there is no bin/java in it" if home else "there is no `java` on the PATH"
        raise SparkUnavailable(f"Spark needs Java and none was found: {where}. {_INSTALL}")
    version = java_version(java)
    if version is None:
        raise SparkUnavailable(f"Spark needs Java, and {java} does not run. {_INSTALL}")
    if version < OLDEST_JAVA:
        raise SparkUnavailable(
            f"Spark needs Java {OLDEST_JAVA} or newer, and {java} is Java {version}. {_INSTALL}", java_version=version
        )
    return version


def find_java(environment: Mapping[str, str]) -> Path | None:
    """The program that Spark's scripts would run: JAVA_HOME first, then the PATH."""
    home = environment.get("JAVA_HOME")
    if home:
        candidate = Path(home) / "bin" / "java"
        return candidate if os.access(candidate, os.X_OK) else None
    found = shutil.which("java", path=environment.get("PATH", os.defpath))
    return Path(found) if found else None


def java_version(java: Path) -> int | None:
    """The major version, from the release file beside it when there is one; None when it does not run at all."""
    release = java.resolve().parent.parent / "release"
    if release.is_file():
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(errors="replace"), re.MULTILINE)
        if found:
            return _major(found[1])
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return _major(found[1]) if found and answer.returncode == 0 else None


def collector_options(environment: Mapping[str, str]) -> list[str]:
    """The garbage collector for a session on one machine: rows that cross to Python and back take a tenth less of the
    processor with the parallel one than with Java's own choice. Nothing where one is chosen already: Java refuses two.
    """
    said = [environment.get(name, "") for name in _OPTION_VARIABLES]
    conf = environment.get("SPARK_CONF_DIR") or _own_conf(environment)
    with suppress(OSError):
        said.append(Path(conf, "java-opts").read_text(errors="replace"))
    return [] if _COLLECTOR.search(" ".join(said)) else ["-XX:+UseParallelGC"]


def _own_conf(environment: Mapping[str, str]) -> Path:
    home = environment.get("SPARK_HOME")
    if home:
        return Path(home, "conf")
    found = importlib.util.find_spec("pyspark")
    return Path(found.origin).parent / "conf" if found is not None and found.origin else Path("conf")


def _major(version: str) -> int | None:
    parts = [int(part) for part in re.findall(r"\d+", version)]
    if not parts:
        return None
    return parts[1] if parts[0] == 1 and len(parts) > 1 else parts[0]
