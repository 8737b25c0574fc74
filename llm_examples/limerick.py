"""A limerick: the smallest skill. Its return type is `str`, so the reply is the value.

python -m effectful_agents.harness llm_examples/limerick.py [THEME]
"""

import sys

from effectful_agents import NotHandled, Skill


@Skill.define
def limerick(theme: str) -> str:
    """Write a limerick of five lines about {theme}."""
    raise NotHandled


if __name__ == "__main__":
    print(limerick(sys.argv[1] if len(sys.argv) > 1 else "a cat in a hat"))
