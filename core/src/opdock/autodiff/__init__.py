"""Automatic differentiation: gradients, Hessians, custom gradients, the gradient checker."""
