"""Variables: reference and resource ones, scopes, partitions, initializers."""
