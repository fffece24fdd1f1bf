"""Training loops: hooks, monitored sessions, the supervisor, and what makes a session ready."""
