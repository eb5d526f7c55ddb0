#!/bin/sh
# Starts the server from the environment. What is missing or contradicts itself is told before anything starts.
# Arguments are those of omnigraph-server, which looks at both.
set -eu

if [ -n "${OMNIGRAPH_CLUSTER:-}" ] && [ -n "${OMNIGRAPH_TARGET_URI:-}" ]; then
    echo "error: OMNIGRAPH_TARGET_URI names a graph and OMNIGRAPH_CLUSTER a cluster: unset one of the two" >&2
    exit 2
fi
if [ -n "${OMNIGRAPH_CLUSTER:-}" ]; then
    for variable in OMNIGRAPH_POLICY OMNIGRAPH_QUERIES; do
        eval "value=\${$variable:-}"
        if [ -n "$value" ]; then
            echo "error: a cluster has its own policies and queries: unset $variable, and declare them in cluster.yaml" >&2
            exit 2
        fi
    done
elif [ -z "${OMNIGRAPH_TARGET_URI:-}" ] && [ "$#" -eq 0 ]; then
    echo "error: nothing to serve: set OMNIGRAPH_TARGET_URI to a graph's URI, or OMNIGRAPH_CLUSTER to a cluster" >&2
    exit 2
fi
exec omnigraph-server "$@"
