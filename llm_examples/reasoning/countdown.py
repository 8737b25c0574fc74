"""Countdown: the model writes the body of a skill, and the examples in its docstring are what it is judged by.

python -m effectful_agents.harness llm_examples/reasoning/countdown.py 3 25 50 75 --target 253 --model gpt-5-mini

The model's code runs in this process, as plain Python: `--eval-provider restricted` holds it back.
"""

import argparse
import ast
import operator
from collections.abc import Callable

from effectful_agents import NotHandled, Skill

OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def value(expression: str, numbers: list[int]) -> float:
    """The value of an expression that uses each of the numbers once at most; an error for any other."""
    left = list(numbers)

    def of(node: ast.expr) -> float:
        match node:
            case ast.BinOp(first, operation, second):
                return OPERATIONS[type(operation)](of(first), of(second))
            case ast.Constant(int(number)):
                left.remove(number)
                return number
        raise ValueError(f"`{ast.unparse(node)}` is no part of it")

    return of(ast.parse(expression, mode="eval").body)


@Skill.define
def countdown(numbers: list[int], target: int) -> str:
    """Reach {target} with +, -, * and / from {numbers}: an expression that uses each of them once at most.

    An empty text where it cannot be done. `value` says what an expression comes to.

    >>> value(countdown([2, 3, 7], 13), [2, 3, 7]) == 13
    True
    >>> value(countdown([1, 3, 4, 6], 24), [1, 3, 4, 6]) == 24
    True
    >>> countdown([1, 1], 9)
    ''
    """
    raise NotHandled


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("numbers", type=int, nargs="*", default=[3, 25, 50, 75])
    parser.add_argument("--target", type=int, default=253)
    given = parser.parse_args()
    found = countdown(given.numbers, given.target)
    print(f"{given.target} = {found}" if found else f"{given.target} cannot be reached.")
