"""The run-time part of datasets: what dataset ops make, and the iterators over it."""
