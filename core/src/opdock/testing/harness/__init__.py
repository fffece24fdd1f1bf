"""How samples become claims and are run."""
