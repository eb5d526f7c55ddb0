#!/bin/sh
# Spark needs a JDK, 17 or newer. Installs the distribution's headless one when root on Debian; otherwise says what to do.
set -eu
version_of() { "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1; }
java=${JAVA_HOME:+$JAVA_HOME/bin/java}
java=${java:-java}
if command -v "$java" >/dev/null 2>&1; then
    found=$(version_of "$java")
    if [ "${found:-0}" -ge 17 ]; then exit 0; fi
    echo "Java ${found:-?} is too old: Spark needs a JDK, 17 or newer." >&2
else
    echo "No Java found: Spark needs a JDK, 17 or newer." >&2
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing the distribution's headless JDK ..." >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null
    exit 0
fi
echo "Install one (Debian, Ubuntu: apt-get install default-jre-headless; Fedora: dnf install java-latest-openjdk-headless; macOS: brew install openjdk) and run this again." >&2
exit 1
