"""A language model inside the process.

`LocalModel` is the handler. Beside it: `weights` finds the file, `engine` runs it, `prompt` writes the conversation for
it, `schema` and `grammar` say what it may reply, `reply` reads that.
"""

from effectful_agents.handlers.provision.local.model import LocalModel

__all__ = ["LocalModel"]
