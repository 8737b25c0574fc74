"""What the providers' documentation says a schema may contain, as checks.

Each function returns the violations that it finds, each with the place in the schema and the rule. Read in November
2026; where a rule is known from the error of the API and not from the guide, it says so.

- OpenAI, guide "Structured model outputs", section "Supported schemas" (structured outputs and strict functions alike);
- Anthropic, guides "Tool use" and "Structured outputs", section "JSON Schema limitations";
- Gemini, API reference, `FunctionDeclaration.parametersJsonSchema` and the list of keywords at `responseJsonSchema`.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import jsonschema

type Schema = dict[str, Any]


class Violation(NamedTuple):
    """A place in a schema and the rule that it breaks."""

    path: str
    rule: str


def nodes(schema: Any, path: str = "#") -> Iterator[tuple[str, Any]]:
    """All schemas in a schema, itself first, with their places; values (`enum`, `default`) are not looked into."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for key in ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"):
        for name, part in schema.get(key, {}).items():
            yield from nodes(part, f"{path}/{key}/{name}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for number, part in enumerate(schema.get(key, ())):
            yield from nodes(part, f"{path}/{key}/{number}")
    for key in ("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}/{key}")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _types(node: Schema) -> list[str]:
    kind = node.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def _lookaround(pattern: str) -> bool:
    return re.search(r"\(\?(=|!|<=|<!)", pattern) is not None


# --- OpenAI -----------------------------------------------------------------------------------------------------------

# "Supported schemas": types, enum, const, anyOf, definitions, recursion; "Supported properties" of each type. `title`
# is not named there, but the schemas of OpenAI's own SDK have it.
_OPENAI_KEYWORDS = _words(
    "type title description properties required additionalProperties items enum const anyOf $ref $defs definitions "
    "pattern format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems"
)
_OPENAI_FORMATS = _words("date-time time date duration email hostname ipv4 ipv6 uuid")
_JSON_TYPES = _words("string number boolean integer object array null")


def openai_strict(schema: Schema) -> list[Violation]:
    """What keeps a schema out of `strict: true`, of structured outputs and of functions."""
    found = list(_root_object(schema))
    for path, node in nodes(schema):
        if not isinstance(node, dict):
            found.append(Violation(path, "a schema is an object"))
            continue
        found += [Violation(path, rule) for rule in _openai_node(node, schema)]
    return found + [Violation("#", rule) for rule in _openai_limits(schema)]


def _openai_node(node: Schema, root: Schema) -> Iterator[str]:
    for key in sorted(node.keys() - _OPENAI_KEYWORDS):
        yield f"the keyword `{key}` is not supported"
    if "$ref" in node:
        yield from _reference(node, root)
        # Error: "$ref cannot have keywords {'description'}". The root may hold `$defs` beside it.
        for key in sorted(node.keys() - {"$ref", "$defs"}):
            yield f"`$ref` with `{key}` beside it"
        return
    # Error: "schema must have a 'type' key". An enumeration and alternatives do without.
    if not node.keys() & {"type", "anyOf", "enum", "const"}:
        yield "a schema has a `type`"
    for kind in _types(node):
        if kind not in _JSON_TYPES:
            yield f"`{kind}` is not a type"
    if "object" in _types(node):
        if node.get("additionalProperties") is not False:
            yield "objects have `additionalProperties: false`"
        if sorted(node.get("properties", ())) != sorted(node.get("required", ())):
            yield "all fields are `required`"
    # Error: "array schema missing items".
    if "array" in _types(node) and not isinstance(node.get("items"), dict):
        yield "arrays have `items`"
    if node.get("format", "date") not in _OPENAI_FORMATS:
        yield f"the format `{node['format']}` is not supported"
    # Error: "regex lookaround is not supported".
    if _lookaround(node.get("pattern", "")):
        yield "a pattern looks neither ahead nor behind"


def _openai_limits(schema: Schema) -> Iterator[str]:
    """The section "Objects have limitations on nesting depth and size" and those after it."""
    properties = [name for _, node in nodes(schema) for name in node.get("properties", ())]
    enums = [node["enum"] for _, node in nodes(schema) if "enum" in node]
    names = [*properties, *schema.get("$defs", ())]
    names += [str(value) for values in enums for value in values]
    names += [str(node["const"]) for _, node in nodes(schema) if "const" in node]
    if len(properties) > 5000:
        yield "at most 5000 properties"
    if _depth(schema) > 10:
        yield "at most 10 levels of objects"
    if sum(map(len, enums)) > 1000:
        yield "at most 1000 values of enumerations"
    if sum(map(len, names)) > 120_000:
        yield "names and values have at most 120,000 characters"
    for values in enums:
        if len(values) > 250 and sum(len(value) for value in values if isinstance(value, str)) > 15_000:
            yield "a long enumeration has at most 15,000 characters"


def _depth(node: Any) -> int:
    """Levels of objects inside each other; references are not followed."""
    if not isinstance(node, dict):
        return 0
    parts = [
        *node.get("properties", {}).values(),
        *node.get("anyOf", ()),
        node.get("items"),
        node.get("additionalProperties"),
    ]
    inside = max(map(_depth, parts), default=0)
    return max(int("object" in _types(node)) + inside, *map(_depth, node.get("$defs", {}).values()), 0)


def openai_answer(schema: Schema) -> list[Violation]:
    """What OpenAI refuses of a structured output without `strict`."""
    found = [Violation("#", "the root is an object")] if schema.get("type") != "object" else []
    for path, node in nodes(schema):
        if isinstance(node, dict) and "$ref" in node:
            found += [Violation(path, rule) for rule in _reference(node, schema)]
    return found


def openai_loose(schema: Schema) -> list[Violation]:
    """What OpenAI refuses of a function without `strict`; known from its errors."""
    found = list(_root_object(schema))
    # Error: "must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
    found += [Violation("#", f"no `{key}` at the top") for key in ("oneOf", "allOf", "enum", "not") if key in schema]
    for path, node in nodes(schema):
        if isinstance(node, dict):
            # Error: "array schema missing items". Elements that differ by place are told by `prefixItems`.
            if "array" in _types(node) and not node.keys() & {"items", "prefixItems"}:
                found.append(Violation(path, "arrays have `items`"))
            if "$ref" in node:
                found += [Violation(path, rule) for rule in _reference(node, schema)]
    return found


def _root_object(schema: Schema) -> Iterator[Violation]:
    """ "Root objects must not be anyOf and must be an object"; Anthropic and Gemini want the same."""
    if schema.get("type") != "object":
        yield Violation("#", "the root is an object")
    if "anyOf" in schema:
        yield Violation("#", "the root is not `anyOf`")
    # Error: "object schema missing properties".
    if not isinstance(schema.get("properties"), dict):
        yield Violation("#", "the root has `properties`")


def _reference(node: Schema, root: Schema) -> Iterator[str]:
    match = re.fullmatch(r"#/(\$defs|definitions)/([^/]+)", node["$ref"])
    if node["$ref"] != "#" and (not match or match[2] not in root.get(match[1], {})):
        yield f"`{node['$ref']}` refers to no definition"


def openai_name(name: str) -> list[Violation]:
    """Names of functions and of response formats: letters, digits, underscores and dashes, at most 64."""
    return [] if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) else [Violation("name", f"`{name}` is not a name")]


# --- Anthropic --------------------------------------------------------------------------------------------------------


def anthropic_tool(schema: Schema) -> list[Violation]:
    """What Anthropic refuses as the `input_schema` of a tool that is not strict."""
    found = list(_root_object(schema))
    # Error: "input_schema does not support oneOf, allOf, or anyOf at the top level".
    found += [Violation("#", f"no `{key}` at the top") for key in ("oneOf", "allOf") if key in schema]
    # Error: "JSON schema is invalid. It must match JSON Schema draft 2020-12".
    validator = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    found += [Violation(error.json_path, "JSON Schema draft 2020-12") for error in validator.iter_errors(schema)]
    # Error: "Property keys should match pattern".
    for path, node in nodes(schema):
        for name in node.get("properties", ()) if isinstance(node, dict) else ():
            if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
                found.append(Violation(path, f"`{name}` is not a name of a property"))
    return found


# "JSON Schema limitations": what the grammar of strict tools and of structured outputs does not know.
_ANTHROPIC_UNKNOWN = _words(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems uniqueItems "
    "minProperties maxProperties patternProperties propertyNames prefixItems oneOf not if then else"
)


def anthropic_strict(schema: Schema) -> list[Violation]:
    """What keeps a schema out of Anthropic's strict tools; nothing of ours asks for them."""
    found = anthropic_tool(schema)
    for path, node in nodes(schema):
        found += [Violation(path, f"the keyword `{key}` is not supported") for key in node.keys() & _ANTHROPIC_UNKNOWN]
        if node.get("minItems", 0) > 1:
            found.append(Violation(path, "`minItems` is 0 or 1"))
        if "object" in _types(node) and node.get("additionalProperties") is not False:
            found.append(Violation(path, "objects have `additionalProperties: false`"))
        if _lookaround(node.get("pattern", "")) or re.search(r"\\b|\\[1-9]", node.get("pattern", "")):
            found.append(Violation(path, "a pattern has neither lookaround, nor `\\b`, nor references back"))
    if recursive(schema):
        found.append(Violation("#", "recursion is not supported"))
    return found


# --- Gemini -----------------------------------------------------------------------------------------------------------

_GEMINI_KEYWORDS = _words(
    "$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum "
    "anyOf oneOf properties additionalProperties required propertyOrdering"
)


def gemini_function(schema: Schema) -> list[Violation]:
    """What Gemini refuses in the parameters of a function."""
    found = list(_root_object(schema))
    for path, node in nodes(schema):
        if "$ref" in node:
            found += [Violation(path, rule) for rule in _reference(node, schema)]
            # "no other properties, except for those starting as a `$`, may be set"
            found += [Violation(path, f"`$ref` with `{key}` beside it") for key in node if not key.startswith("$")]
        # "`enum` (for strings and numbers)"
        if any(isinstance(value, bool) or not isinstance(value, str | int | float) for value in node.get("enum", ())):
            found.append(Violation(path, "values of an enumeration are texts and numbers"))
    for name in schema.get("properties", ()):
        # "must start with a letter or an underscore and must only contain chars a-z, A-Z, 0-9, or underscores"
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}", name):
            found.append(Violation("#", f"`{name}` is not a name of a parameter"))
    return found


def gemini_ignored(schema: Schema) -> list[Violation]:
    """What Gemini reads over: the keywords outside its list. What they say must be said in words as well."""
    return [
        Violation(path, f"the keyword `{key}` is ignored")
        for path, node in nodes(schema)
        for key in sorted(node.keys() - _GEMINI_KEYWORDS)
    ]


def recursive(schema: Schema) -> bool:
    """Whether a definition leads back to itself: Gemini unrolls those, and only where they are not required."""
    graph: dict[str, set[str]] = {
        key: {node["$ref"] for _, node in nodes(part) if "$ref" in node}
        for key, part in [("#", schema), *((f"#/$defs/{name}", part) for name, part in schema.get("$defs", {}).items())]
    }
    graph["#"] = {ref for ref in graph["#"] if ref == "#"}  # through the definitions is looked at below
    return any(_reaches(graph, ref, start, set()) for start in graph for ref in graph[start])


def _reaches(graph: dict[str, set[str]], ref: str, goal: str, seen: set[str]) -> bool:
    if ref == goal:
        return True
    if ref in seen:
        return False
    seen.add(ref)
    return any(_reaches(graph, further, goal, seen) for further in graph.get(ref, ()))
