"""A step over the tasks of a cluster: which task does what, and what each of them is told."""
