"""Primes: the return type is a contract, and an answer that breaks it is sent back with the reason.

python -m effectful_agents.harness llm_examples/primes.py [FIRST_DIGIT]
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
    if number < 2 or divisor is not None:
        raise ValueError(f"{number} is not prime" + (f": {divisor} divides it" if divisor else ""))
    return number


type Prime = Annotated[int, Ge(10), Le(99), AfterValidator(is_prime)]


@Skill.define
def prime(first_digit: Annotated[int, Ge(1), Le(9)]) -> Prime:
    """Give a prime number of two digits that has {first_digit} as its first digit."""
    raise NotHandled


if __name__ == "__main__":
    digit = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    try:
        with handler(TenacityRetryer(stop=tenacity.stop_after_attempt(ATTEMPTS))):
            print(prime(digit))
    except ResultDecodingError as error:
        sys.exit(f"The model found no prime in {ATTEMPTS} attempts; its last one: {error.original_error}")
