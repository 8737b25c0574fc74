"""Handlers of `completion`: who carries out a request to a model.

`litellm` asks the services that LiteLLM knows, `http` one that speaks OpenAI's chat completions, `local` a model inside
this process. Each is imported from its own module, since each needs a library that takes its time to load or is not
installed. `Fallback` asks another model when one fails, and `RateLimit` keeps to what a service allows.
"""

from effectful_agents.handlers.provision.alternatives import Model
from effectful_agents.handlers.provision.fallback import Fallback, another_may_answer
from effectful_agents.handlers.provision.rate_limit import RateLimit

__all__ = ["Fallback", "Model", "RateLimit", "another_may_answer"]
