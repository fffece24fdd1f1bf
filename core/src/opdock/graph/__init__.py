"""The graph: operations, tensors, scopes, collections, conversion, serialization."""
