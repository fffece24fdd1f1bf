"""Programs to measure: one step of each is timed, and its values are checked against NumPy.

`opdock bench` runs them on devices. The benchmarks run them in TensorFlow too, and in interpreters
that have no opdock: what is imported here, relative to here, is NumPy and the standard library.
"""
