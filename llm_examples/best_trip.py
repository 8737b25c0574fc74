"""The best trip: a tool that takes values of any type, and a function. JSON cannot say such a call, and Python can.

python -m effectful_agents.harness llm_examples/best_trip.py --model gpt-5-mini
"""

import dataclasses
from collections.abc import Callable

from effectful_agents import NotHandled, Skill, Tool


@dataclasses.dataclass(frozen=True)
class Trip:
    """A trip."""

    city: str
    days: int
    price: int


TRIPS = [Trip("Oslo", 3, 390), Trip("Rome", 5, 500), Trip("Lisbon", 7, 770)]


@Tool.define
def best[T](items: list[T], score: Callable[[T], float]) -> T:
    """The item with the highest score."""
    return max(items, key=score)


@Skill.define
def advise(wish: str) -> Trip:
    """Choose one of the trips in `TRIPS` for somebody whose wish is: {wish}. Use the tool `best`."""
    raise NotHandled


if __name__ == "__main__":
    trip = advise("as little money as possible for a day")
    print(f"{trip.city}, {trip.days} days for {trip.price}")
