"""Fan-out: an asynchronous skill is called for fifty items at once, on one thread, with a progress bar.

python -m effectful_agents.harness llm_examples/fan_out.py
"""

import asyncio
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.progress import Progress

from effectful_agents import NotHandled, Skill

ANIMALS = """
eagle trout wolf owl shark bear robin salmon lion penguin
tuna horse crow carp fox gull eel deer wren pike
goat finch cod mouse stork perch tiger swan herring zebra
raven bass camel dove sole otter heron plaice rabbit kite
halibut sheep goose anchovy donkey hawk sardine badger pigeon mackerel
"""

type Kind = Literal["mammal", "bird", "fish"]


@Skill.define
async def kind(animal: str) -> Kind:
    """Is the {animal} a mammal, a bird, or a fish?"""
    raise NotHandled


async def sort(animals: Sequence[str]) -> dict[str, Kind]:
    """Ask about all animals at once."""
    found: dict[str, Kind] = {}
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("asking", total=len(animals))

        async def ask(animal: str) -> None:
            found[animal] = await kind(animal)
            progress.advance(bar)

        await asyncio.gather(*map(ask, animals))
    return found


if __name__ == "__main__":
    names = ANIMALS.split()
    kinds = asyncio.run(sort(names))
    for name in names:
        print(f"{name}: {kinds[name]}")
