"""Op families: signature, shape function, gradient, decomposition and public function together."""
