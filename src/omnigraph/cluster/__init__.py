"""Clusters: a deployment as code. A folder says what is wanted, a ledger what was applied."""
