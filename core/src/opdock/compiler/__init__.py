"""From a graph, fetches and feeds to a program: one IR, one file a pass."""
