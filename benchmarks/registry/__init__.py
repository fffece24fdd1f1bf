"""One row for every op that a program can name: its conformance samples, made large."""
