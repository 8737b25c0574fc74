"""Values that fit a JSON schema, made by chance."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from effectful_agents.errors import EncodingError
from effectful_agents.testing.code import code_like
from effectful_agents.testing.texts import text_like, text_of_format

__all__ = ["sample"]

_DEEPEST = 4
"""How deep values go into one another while there is a choice."""
_MOST_ATTEMPTS = 50
_WORDS = ("apple", "bridge", "cloud", "door", "engine", "forest", "garden", "harbor", "island", "lamp")
_BY_CHECKING = frozenset(
    {"not", "if", "oneOf", "contains", "dependentRequired", "dependentSchemas", "patternProperties"}
)
_OF_ONE_KIND = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "propertyNames", "minProperties"), "object"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "uniqueItems"), "array"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
}


def sample(schema: Any, seed: int | str = 0) -> Any:
    """A value that fits a JSON schema; for the same schema and the same seed always the same.

    Values that go into one another come to an end, and are small.

    Args:
        schema: The schema, as this package and pydantic make them; definitions of its own stand in `$defs`.
        seed: What the choices depend on.

    Raises:
        EncodingError: No value was found that fits.

    >>> sample({"type": "array", "items": {"type": "integer", "exclusiveMinimum": 2}, "minItems": 2})
    [4, 7]
    """
    try:
        sampler = _Sampler(schema, random.Random(f"{seed}"))
        checked = _mentions(schema, _BY_CHECKING)
        for _ in range(_MOST_ATTEMPTS):
            value = sampler.make(schema, 0)
            if not checked or _fits(value, schema):
                return value
    except RecursionError as error:
        raise EncodingError("a value of the schema would have no end") from error
    raise EncodingError(f"no value was found that fits the schema {json.dumps(schema, ensure_ascii=False)[:500]}")


def _mentions(schema: Any, keywords: frozenset[str]) -> bool:
    if isinstance(schema, Mapping):
        return not keywords.isdisjoint(schema) or any(_mentions(part, keywords) for part in schema.values())
    return isinstance(schema, list) and any(_mentions(part, keywords) for part in schema)


def _fits(value: Any, schema: Any) -> bool:
    import jsonschema  # noqa: PLC0415 - loaded when a schema needs it

    return jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema).is_valid(value)


class _Sampler:
    def __init__(self, root: Any, chance: random.Random) -> None:
        self._root = root
        self._chance = chance
        self._costs: dict[str, float] = {}
        self._find_costs()

    # --- how deep a value has to go ---

    def _find_costs(self) -> None:
        """Find out how many levels a value of each definition has at least, those of others inside included."""
        names = [f"#/{where}/{name}" for where in ("$defs", "definitions") for name in self._part(where)]
        self._costs = dict.fromkeys([*names, "#"], math.inf)
        for _ in range(len(self._costs)):
            before = dict(self._costs)
            for name in self._costs:
                self._costs[name] = self._cost(self._resolved(name))
            if before == self._costs:
                return

    def _part(self, where: str) -> Mapping[str, Any]:
        part = self._root.get(where) if isinstance(self._root, Mapping) else None
        return part if isinstance(part, Mapping) else {}

    def _resolved(self, reference: str) -> Any:
        found = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step, {}) if isinstance(found, Mapping) else {}
        return found

    def _cost(self, schema: Any) -> float:
        if not isinstance(schema, Mapping):
            return math.inf if schema is False else 0
        if "const" in schema or "enum" in schema:
            return 0
        if "$ref" in schema:
            return self._costs.get(schema["$ref"], 0)
        if parts := schema.get("allOf"):
            return max(map(self._cost, parts))
        for union in ("anyOf", "oneOf"):
            if parts := schema.get(union):
                return min(map(self._cost, parts))
        properties = schema.get("properties", {})
        needed = [properties.get(name, True) for name in schema.get("required", ())]
        least = schema.get("minItems", 0)
        needed += schema.get("prefixItems", [])[:least]
        if least > len(schema.get("prefixItems", ())):
            needed.append(schema.get("items", True))
        return 1 + max(map(self._cost, needed)) if needed else 0

    # --- values ---

    def make(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, Mapping):
            if schema is False:
                raise EncodingError("nothing fits the schema `false`")
            return self._chance.choice(_WORDS)
        if "$ref" in schema:
            inner = self._resolved(schema["$ref"])
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            return self.make({**inner, **rest} if isinstance(inner, Mapping) else inner, depth)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._chance.choice(schema["enum"])
        if schema.get("allOf"):
            return self.make(self._merged(schema), depth)
        for union in ("anyOf", "oneOf"):
            if schema.get(union):
                return self._one_of(schema, union, depth)
        examples = [one for one in schema.get("examples", ()) if isinstance(one, str)]
        if examples and schema.get("type") == "string" and "pattern" not in schema:
            return self._chance.choice(examples)
        return self._of_kind(self._kind(schema), schema, depth)

    def _merged(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        whole = {name: value for name, value in schema.items() if name != "allOf"}
        for part in schema["allOf"]:
            while isinstance(part, Mapping) and "$ref" in part:
                part = {**self._resolved(part["$ref"]), **{name: one for name, one in part.items() if name != "$ref"}}
            for name, value in part.items() if isinstance(part, Mapping) else ():
                present = whole.get(name)
                if isinstance(present, Mapping) and isinstance(value, Mapping):
                    whole[name] = {**present, **value}
                elif isinstance(present, list) and isinstance(value, list) and name in ("required", "allOf"):
                    whole[name] = [*present, *value]
                else:
                    whole[name] = _narrower(name, present, value)
        return whole

    def _one_of(self, schema: Mapping[str, Any], union: str, depth: int) -> Any:
        rest = {name: value for name, value in schema.items() if name not in (union, "discriminator", "default")}
        costs = [(self._cost(part), part) for part in schema[union]]
        least = min(cost for cost, _ in costs)
        if math.isinf(least):
            raise EncodingError(f"a value of the schema {json.dumps(schema)[:200]} would have no end")
        most = least if depth >= _DEEPEST else math.inf
        part = self._chance.choice([part for cost, part in costs if cost <= most and not math.isinf(cost)])
        return self.make({**rest, **part} if isinstance(part, Mapping) else part, depth)

    def _kind(self, schema: Mapping[str, Any]) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._chance.choice(kind)
        return kind or next((_OF_ONE_KIND[name] for name in schema if name in _OF_ONE_KIND), "string")

    def _of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self._chance.random() < 0.5
            case "integer" | "number":
                return _number(schema, self._chance, whole=kind == "integer")
            case "array":
                return self._array(schema, depth)
            case "object":
                return self._object(schema, depth)
            case _:
                return self._text(schema)

    def _text(self, schema: Mapping[str, Any]) -> str:
        shortest, longest = schema.get("minLength", 0), schema.get("maxLength")
        description = schema.get("description", "")
        if said := _JSON.search(description):
            return json.dumps(sample(json.loads(said[1]), self._chance.getrandbits(64)))
        if description.startswith("a decimal number") and (bounds := _bounds_of_decimal(description)):
            number = _number(bounds, self._chance, whole=False)
            return format(Decimal(str(number)), "f")
        if said := _BYTES.search(description):
            shortest = max(shortest, int(said[1]))
        if "pattern" in schema:
            text = text_like(schema["pattern"], self._chance, shortest, longest)
            if text is None:
                raise EncodingError(f"no text was found that fits the pattern {schema['pattern']!r}")
            return text
        text = text_of_format(schema.get("format", ""), self._chance)
        if text is None:
            # What a type cannot say in a schema is said to models in words.
            example = re.search(r"(?:\bas|for example|e\.g\.|such as) (\S+)$", description)
            text = example[1] if example else self._chance.choice(_WORDS)
        while len(text) < shortest:
            text += f" {self._chance.choice(_WORDS)}"
        return text if longest is None else text[:longest]

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        firsts, rest = schema.get("prefixItems", []), schema.get("items", True)
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        if rest is False or ("prefixItems" in schema and "items" not in schema):
            most = min(most, len(firsts))
        wanted = max(len(firsts), self._chance.randint(1, 3))
        if depth >= _DEEPEST or (len(firsts) < wanted and math.isinf(self._cost(rest))):
            wanted = max(least, len(firsts) if least >= len(firsts) else 0)
        if _is_pair(rest):  # of a mapping; which keys are the same is not said
            wanted = 1
        count = int(min(max(wanted, least), most))
        # A set does not say that it is one. That many are different where there are so many.
        is_set = bool(schema.get("uniqueItems"))
        taken_care = is_set or least > 1
        if taken_care and isinstance(rest, Mapping) and rest.get("type") in ("integer", "number"):
            rest = _with_room(rest, 2 * count)
        values: list[Any] = []
        for place in range(count):
            part = firsts[place] if place < len(firsts) else rest
            value = self._another(lambda part=part: self.make(part, depth + 1), values if taken_care else ())
            if value is _NONE and not is_set:
                value = self.make(part, depth + 1)
            if value is _NONE:
                if len(values) < least:
                    raise EncodingError("there are not enough different values for a list without repetitions")
                break
            values.append(value)
        return values

    def _another(self, make: Callable[[], Any], taken: Iterable[Any]) -> Any:
        texts = {_text_of(value) for value in taken}
        for _ in range(_MOST_ATTEMPTS):
            value = make()
            if _text_of(value) not in texts:
                return value
        return _NONE

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        made: dict[str, Any] = {}
        for name, part in properties.items():
            # What tells alternatives from one another is written always.
            told_apart = isinstance(part, Mapping) and "const" in part
            if name not in required and not told_apart and (depth >= _DEEPEST or self._left_out(part)):
                continue
            made[name] = code_like(schema, name) or self.make(part, depth + 1)
        for name in required:
            if name not in made:
                made[name] = self.make(schema.get("additionalProperties", True) or True, depth + 1)
        others = schema.get("additionalProperties", "properties" not in schema)
        least, most = schema.get("minProperties", 0), schema.get("maxProperties", math.inf)
        if others is not False:
            wanted = (
                0 if depth >= _DEEPEST or math.isinf(self._cost(others)) or properties else self._chance.randint(1, 2)
            )
            for _ in range(int(min(max(least, wanted + len(made)), most)) - len(made)):
                name = self._another(lambda: self._name(schema), made)
                if name is not _NONE:
                    made[name] = self.make(others, depth + 1)
        return made

    def _left_out(self, part: Any) -> bool:
        # What a class computes itself is not written; what has a default, now and then.
        return _is_computed(part) or math.isinf(self._cost(part)) or self._chance.random() < 0.3

    def _name(self, schema: Mapping[str, Any]) -> str:
        said = _NAMES.search(schema.get("description", ""))
        names = json.loads(said[1]) if said else schema.get("propertyNames")
        if names is not None:
            return self.make({"type": "string", **names}, _DEEPEST)
        if patterns := list(schema.get("patternProperties", ())):
            return text_like(self._chance.choice(patterns), self._chance) or self._chance.choice(_WORDS)
        return str(self._chance.randint(1, 99))  # a name, and also a number where the type wants one


_JSON = re.compile(r"the text is JSON of the schema (\{.*\})")
_BYTES = re.compile(r"\bat least (\d+) bytes\b")
_SAID_BOUNDS = {
    "exclusiveMinimum": "greater than",
    "minimum": "at least",
    "exclusiveMaximum": "less than",
    "maximum": "at most",
}
_NAMES = re.compile(r"each key fits the schema (\{.*\})")
_NONE = object()


def _text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _is_pair(part: Any) -> bool:
    return isinstance(part, Mapping) and list(part.get("properties", ())) == ["key", "value"]


def _is_computed(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("readOnly") is True


def _narrower(name: str, one: Any, other: Any) -> Any:
    if one is None or not isinstance(other, int | float):
        return other
    if name in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
        return max(one, other)
    return min(one, other) if name in ("maximum", "exclusiveMaximum", "maxLength", "maxItems") else other


def _bounds_of_decimal(description: str) -> dict[str, float]:
    """The bounds of a number that is a text, as they are said in words."""
    found = {name: re.search(rf"\b{said} (-?[0-9.]*[0-9])", description) for name, said in _SAID_BOUNDS.items()}
    return {name: float(match[1]) for name, match in found.items() if match}


def _with_room(schema: Mapping[str, Any], count: int) -> Mapping[str, Any]:
    """A schema of numbers with so many that fit, unless it has bounds."""
    if not {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"}.isdisjoint(schema):
        return schema
    return {**schema, "minimum": 0, "maximum": max(10, count)}


def _number(schema: Mapping[str, Any], chance: random.Random, *, whole: bool) -> int | float:
    """A number between the bounds, a simple one where there is one."""
    step = Fraction(str(schema["multipleOf"])) if "multipleOf" in schema else None
    if step is None and whole:
        step = Fraction(1)
    low, high = _bound(schema, "minimum", max), _bound(schema, "maximum", min)
    ends = [
        low is not None and low == schema.get("exclusiveMinimum"),
        high is not None and high == schema.get("exclusiveMaximum"),
    ]
    if low is None:
        low = min(Fraction(0), high - 10) if high is not None else Fraction(0)
    if high is None:
        high = max(Fraction(10), low + 10)
    if step is None:
        step = Fraction(1, 2)
        while not _multiples(low, high, step, ends):
            if low > high or (low == high and any(ends)):
                raise EncodingError(f"no number lies between the bounds {low} and {high}")
            if low == high:
                return float(low)
            step /= 2
    first_and_last = _multiples(low, high, step, ends)
    if not first_and_last:
        raise EncodingError(f"no multiple of {step} lies between the bounds {low} and {high}")
    number = chance.randint(*first_and_last) * step
    return int(number) if number.denominator == 1 and (whole or "multipleOf" not in schema) else float(number)


def _bound(schema: Mapping[str, Any], name: str, strictest: Callable[[list[Fraction]], Fraction]) -> Fraction | None:
    exclusive = f"exclusive{name.capitalize()}"
    bounds = [Fraction(str(schema[key])) for key in (name, exclusive) if isinstance(schema.get(key), int | float)]
    return strictest(bounds) if bounds else None


def _multiples(low: Fraction, high: Fraction, step: Fraction, ends: list[bool]) -> tuple[int, int] | None:
    """Which multiples of a step lie between two bounds: the first and the last one."""
    first, last = math.ceil(low / step), math.floor(high / step)
    first += ends[0] and first * step == low
    last -= ends[1] and last * step == high
    return (first, last) if first <= last else None
