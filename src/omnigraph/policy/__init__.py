"""Who may do what: a YAML bundle of rules, compiled to Cedar and asked at the head of every call on a graph."""
