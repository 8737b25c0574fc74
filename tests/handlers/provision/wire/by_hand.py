"""The examples without a framework: what somebody writes who knows the wire, and sends nothing for nothing.

Same words, same tools, same form of the answer as in `llm_examples`. Each function runs a whole example against a
service and returns nothing: what counts is what it sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

type Ask = Callable[..., dict[str, Any]]


def run(name: str, url: str, read: str) -> None:
    """Run an example; `extract` reads a text."""
    {"extract": lambda ask: extract(ask, read)}.get(name, globals()[name])(_asking(url))


def _asking(url: str) -> Ask:
    """A function that sends messages, and returns the message that comes back."""

    def ask(messages: list[Any], **more: Any) -> dict[str, Any]:
        body = {"model": "test", "messages": messages, **more}
        return httpx.post(f"{url}/chat/completions", json=body).json()["choices"][0]["message"]

    return ask


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def form(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    """An answer in JSON that the service holds the model to."""
    schema = {
        "type": "object",
        **({"description": description} if description else {}),
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def tool(name: str, description: str, **properties: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if properties:
        parameters["required"] = list(properties)
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def text(least: int, most: int) -> dict[str, Any]:
    # Strict mode has no keyword for the length of a text.
    return {"type": "string", "description": f"{least} to {most} characters"}


def joke(ask: Ask) -> None:
    lines = {"whos_there": text(1, 80), "punchline": text(1, 80)}
    about = "The two lines of a knock-knock joke that change from joke to joke."
    ask([user("Make up a knock-knock joke about lizards.")], response_format=form("KnockKnockJoke", about, **lines))


def limerick(ask: Ask) -> None:
    ask([user("Write a limerick of five lines about a cat in a hat.")])


def primes(ask: Ask) -> None:
    prime = form("Prime", value={"type": "integer", "minimum": 60, "maximum": 69})
    messages = [user("Give a prime number of two digits that has 6 as its first digit.")]
    while True:
        said = ask(messages, response_format=prime)["content"]
        number = json.loads(said)["value"]
        divisor = next((d for d in range(2, number) if number % d == 0), None)
        if not 60 <= number <= 69:
            problem = f"{number} is not between 60 and 69."
        elif divisor is not None:
            problem = f"{number} is not prime: {divisor} divides it."
        else:
            return
        messages += [{"role": "assistant", "content": said}, user(f"{problem} Try again.")]


CITIES = ["Chicago", "New York", "Barcelona"]
WEATHER = {"Chicago": "cold", "New York": "wet", "Barcelona": "sunny"}


def vacation(ask: Ask) -> None:
    city = {"type": "string", "enum": CITIES}
    tools = [tool("cities", "The cities that can be visited."), tool("weather", "The weather in a city.", city=city)]
    messages = [user("Use the tools to find a city that has good weather.")]
    while calls := (reply := ask(messages, tools=tools, response_format=form("City", value=city))).get("tool_calls"):
        messages.append(
            {"role": "assistant", "tool_calls": calls} | ({"content": reply["content"]} if reply["content"] else {})
        )
        for call in calls:
            arguments = json.loads(call["function"]["arguments"])
            result = WEATHER[arguments["city"]] if arguments else json.dumps(CITIES, separators=(",", ":"))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def extract(ask: Ask, read: str) -> None:
    fields = {
        "title": text(2, 60),
        "topics": {"type": "array", "items": text(2, 24), "minItems": 1, "maxItems": 3},
        "summary": text(40, 140),
    }
    question = "That was a text. Give its title, up to three topics of it, and a summary in one sentence."
    ask([user(f"{read}\n\n{question}")], response_format=form("Summary", "What a text is about.", **fields))


def chatbot(ask: Ask) -> None:
    messages = [{"role": "system", "content": "A friendly companion who answers in one or two sentences."}]
    for line in ("Hi! How are you? I am in France.", "Remind me again: where am I?"):
        messages.append(user(f"You are Robin. The user writes: {line}"))
        messages.append({"role": "assistant", "content": ask(messages)["content"]})
