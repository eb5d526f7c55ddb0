"""Objects, leases, Lance tables and forks: the only package that imports lance."""
