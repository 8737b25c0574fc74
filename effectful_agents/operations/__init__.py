"""Every operation of the system, and the plain data that each carries. No handler lives here.

A module is the documentation of its operations: what they mean, which errors come out, who handles them.
"""
