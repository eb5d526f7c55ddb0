"""No Java, or one too old: one clear error that says what to install, found without starting a JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import SparkUnavailable
from omnigraph.spark.session.starting.java import collector_options, find_java, java_version, require_java


def fake_jdk(root: Path, *, release: str | None = None, prints: str | None = None, fails: bool = False) -> Path:
    program = root / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{prints or ''}' >&2\nexit {1 if fails else 0}\n")
    program.chmod(0o755)
    if release:
        (root / "release").write_text(f'IMPLEMENTOR="Nobody"\nJAVA_VERSION="{release}"\n')
    return root


def test_no_java_on_the_path_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailable, match=r"none was found.*PATH.*Install a JDK, 17 or newer"):
        require_java({"PATH": str(tmp_path)})


def test_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailable, match=r"JAVA_HOME is .*Install a JDK"):
        require_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})


@pytest.mark.parametrize(("release", "major"), [("1.8.0_392", 8), ("11.0.2", 11), ("16", 16)])
def test_java_too_old_says_which_and_what_to_install(tmp_path: Path, release: str, major: int) -> None:
    home = fake_jdk(tmp_path / "jdk", release=release)
    with pytest.raises(SparkUnavailable, match=f"is Java {major}") as caught:
        require_java({"JAVA_HOME": str(home)})
    assert caught.value.details["java_version"] == major
    assert "engine='local'" in caught.value.message


@pytest.mark.parametrize(("release", "major"), [("17.0.15", 17), ("21", 21), ("22-ea", 22)])
def test_the_release_file_answers_without_running_java(tmp_path: Path, release: str, major: int) -> None:
    home = fake_jdk(tmp_path / "jdk", release=release, fails=True)
    assert require_java({"JAVA_HOME": str(home)}) == major


def test_without_a_release_file_java_itself_is_asked(tmp_path: Path) -> None:
    home = fake_jdk(tmp_path / "jdk", prints='openjdk version "17.0.1" 2021-10-19')
    assert java_version(home / "bin" / "java") == 17


def test_a_java_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    home = fake_jdk(tmp_path / "jdk", prints="No Java runtime present", fails=True)
    with pytest.raises(SparkUnavailable, match="does not run"):
        require_java({"JAVA_HOME": str(home)})


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home = fake_jdk(tmp_path / "jdk", release="17")
    assert find_java({"JAVA_HOME": str(home), "PATH": "/usr/bin"}) == home / "bin" / "java"


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_a_collector_that_somebody_chose_stays_the_only_one(tmp_path: Path, name: str) -> None:
    """Java does not start with two."""
    nothing = {"SPARK_CONF_DIR": str(tmp_path)}
    assert collector_options(nothing) == ["-XX:+UseParallelGC"]
    assert collector_options({**nothing, name: "-Xss4m"}) == ["-XX:+UseParallelGC"]
    assert collector_options({**nothing, name: "-Xss4m -XX:+UseG1GC"}) == []


def test_a_collector_in_sparks_own_file_of_options_stays(tmp_path: Path) -> None:
    (tmp_path / "java-opts").write_text("-XX:+UseSerialGC")
    assert collector_options({"SPARK_CONF_DIR": str(tmp_path)}) == []
    (tmp_path / "conf").mkdir()
    assert collector_options({"SPARK_HOME": str(tmp_path)}) == ["-XX:+UseParallelGC"]
    (tmp_path / "java-opts").rename(tmp_path / "conf" / "java-opts")
    assert collector_options({"SPARK_HOME": str(tmp_path)}) == []
