"""OmniGraph: a typed, versioned property-graph store with Git-style branches."""
