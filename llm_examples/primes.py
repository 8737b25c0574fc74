"""Primes: the return type is a contract, and an answer that breaks it is sent back with the reason.

python -m effectful_agents.harness llm_examples/primes.py
"""

import sys
from typing import Annotated

import tenacity
from annotated_types import Ge, Le
from pydantic import AfterValidator

from effectful_agents import NotHandled, Skill, handler
from effectful_agents.errors import ResultDecodingError
from effectful_agents.handlers.durability import TenacityRetryer

ATTEMPTS = 20


def is_prime(number: int) -> int:
    """Give the number back if it is prime."""
    divisor = next((d for d in range(2, number) if number % d == 0), None)
    if divisor is not None:
        raise ValueError(f"{number} is not prime: {divisor} divides it")
    return number


# The bounds are part of the form that the model is given; the validator looks at what it answers.
type Prime = Annotated[int, Ge(60), Le(69), AfterValidator(is_prime)]


@Skill.define
def prime(first_digit: int) -> Prime:
    """Give a prime number of two digits that has {first_digit} as its first digit."""
    raise NotHandled


if __name__ == "__main__":
    try:
        with handler(TenacityRetryer(stop=tenacity.stop_after_attempt(ATTEMPTS))):
            print(prime(6))
    except ResultDecodingError as error:
        sys.exit(f"The model found no prime in {ATTEMPTS} attempts. The last one: {error.original_error}")
