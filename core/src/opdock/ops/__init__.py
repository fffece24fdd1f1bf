"""Op families: signature, shape function, gradient, decomposition and public function together."""

import importlib

# Whoever has ops has tensors, which have their operators from the first on.
importlib.import_module("opdock.ops.support.operators")
