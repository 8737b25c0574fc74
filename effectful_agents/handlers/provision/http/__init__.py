"""A model behind an address, asked without LiteLLM.

`HttpModel` is the handler, `Provider` the dialect that it speaks. Beside them: `transport` carries a request, `sse`
reads an answer in pieces, `failures` words what went wrong.
"""

from effectful_agents.handlers.provision.assembly import Piece, PieceOfCall
from effectful_agents.handlers.provision.http.dialect import OpenAICompatible, Provider
from effectful_agents.handlers.provision.http.model import HttpModel

__all__ = ["HttpModel", "OpenAICompatible", "Piece", "PieceOfCall", "Provider"]
