"""A rule for words: the skill returns a function, which the model writes and which is used without it from then on.

python -m effectful_agents.harness llm_examples/word_rule.py "begins and ends with the same letter" --model gpt-5-mini
"""

import sys
from collections.abc import Callable

from effectful_agents import NotHandled, Skill

WORDS = ["level", "river", "area", "stone", "window", "noon", "tent", "garden"]


@Skill.define
def rule(wish: str) -> Callable[[str], bool]:
    """Write a function that takes a word and says whether it fits this wish: {wish}.

    Write two examples into its docstring, of a word that fits and of one that does not.
    """
    raise NotHandled


if __name__ == "__main__":
    fits = rule(sys.argv[1] if len(sys.argv) > 1 else "reads the same backwards")
    print(*filter(fits, WORDS), sep="\n")
