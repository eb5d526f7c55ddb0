#!/bin/sh
# Starts the server from the environment. What is missing or contradicts itself is told before anything starts.
set -eu

if [ -n "${OMNIGRAPH_CLUSTER:-}" ]; then
    echo "error: this release serves no clusters: unset OMNIGRAPH_CLUSTER and set OMNIGRAPH_TARGET_URI to a graph's URI" >&2
    exit 2
fi
if [ -z "${OMNIGRAPH_TARGET_URI:-}" ]; then
    echo "error: nothing to serve: set OMNIGRAPH_TARGET_URI to the graph's URI" >&2
    exit 2
fi
exec omnigraph-server "$@"
