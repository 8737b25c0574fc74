"""References to tools: a tool's definition crosses the seam once, and its reference from then on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["ref_of"]


def ref_of(definition: Mapping[str, Any]) -> str:
    """What stands for the definition of a tool: its name, and a digest of all of it as it is written.

    Both sides can tell it, so that neither need believe the other; and a tool that changes has another one. The order
    of its keys counts, since a model is to be sent the very same bytes.

    >>> ref_of({"type": "function", "function": {"name": "weather", "parameters": {}}})
    'weather@80d1d4945aebf168b7a833f222b08921'
    """
    text = json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{definition['function']['name']}@{digest}"
