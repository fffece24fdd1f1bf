"""Plugins: the hooks, the records that hooks yield, and the manager that loads and guards them."""
