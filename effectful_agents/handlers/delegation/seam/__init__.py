"""The seam between a program and a gateway, which performs operations for it: both sides, and the wire between them."""
