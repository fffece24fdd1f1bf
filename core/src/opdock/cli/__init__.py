"""The `opdock` command: one module a subcommand, loaded when it is used."""
