"""Running programs: session, bound programs, session state, tracing."""
