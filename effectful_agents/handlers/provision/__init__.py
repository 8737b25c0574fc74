"""Handlers of `completion`: who carries out a request to a model.

`litellm` asks the services that LiteLLM knows, `http` one that speaks OpenAI's chat completions, `local` a model inside
this process. Each is imported from its own module, since each needs a library that takes its time to load or is not
installed.
"""
