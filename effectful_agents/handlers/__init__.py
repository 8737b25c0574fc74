"""The handlers: what gives the operations of `effectful_agents.operations` their meaning.

One package a family. A handler is imported from its family; no family knows another, and `effectful_agents.harness`
puts them together.
"""
