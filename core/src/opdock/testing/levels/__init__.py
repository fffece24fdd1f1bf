"""The levels of the conformance suite."""
