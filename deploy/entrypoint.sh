#!/bin/sh
# Starts the server from the environment. What is missing or contradicts itself is told before anything starts.
set -eu

if [ -n "${OMNIGRAPH_TARGET_URI:-}" ] && [ -n "${OMNIGRAPH_CLUSTER:-}" ]; then
    echo "error: OMNIGRAPH_TARGET_URI and OMNIGRAPH_CLUSTER contradict each other: set one of them" >&2
    exit 2
fi
if [ -n "${OMNIGRAPH_CLUSTER:-}" ]; then
    exec omnigraph-server --cluster "$OMNIGRAPH_CLUSTER" "$@"
fi
if [ -z "${OMNIGRAPH_TARGET_URI:-}" ]; then
    echo "error: nothing to serve: set OMNIGRAPH_TARGET_URI to the graph's URI" >&2
    exit 2
fi
exec omnigraph-server "$@"
