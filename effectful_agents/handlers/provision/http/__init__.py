"""A model behind an address, asked without LiteLLM.

`HttpModel` is the handler, `Provider` the dialect that it speaks. Beside them: `transport` carries a request, `sse` and
`assembly` read a reply that comes in pieces, `failures` words what went wrong.
"""

from effectful_agents.handlers.provision.http.dialect import OpenAICompatible, Piece, PieceOfCall, Provider
from effectful_agents.handlers.provision.http.model import HttpModel

__all__ = ["HttpModel", "OpenAICompatible", "Piece", "PieceOfCall", "Provider"]
