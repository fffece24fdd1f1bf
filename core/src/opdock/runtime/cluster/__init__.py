"""Steps over the tasks of a cluster: what a master asks, what tasks do, what goes between them."""
