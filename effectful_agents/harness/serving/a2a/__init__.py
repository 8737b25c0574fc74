"""A script as an A2A server: `effectful-agents serve a2a SCRIPT`."""
