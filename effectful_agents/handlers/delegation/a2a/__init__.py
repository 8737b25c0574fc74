"""Agents of other processes, by the A2A protocol. It needs the extra `a2a`."""
