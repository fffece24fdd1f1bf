"""Public functions made of several ops; no op is defined here."""
