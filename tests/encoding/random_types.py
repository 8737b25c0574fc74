"""Types and values at random.

A *recipe* is plain data (tuples of text, numbers and recipes): it can be printed, sent to another process, and built
twice. `build` makes a type annotation of it, and a strategy for the values of that type.
"""

import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import operator
import pathlib
import re
import types
import typing
import uuid
import zoneinfo
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict

import annotated_types
import attrs
import pydantic
from hypothesis import strategies as st

from effectful_agents.encoding import Encodable
from tests.encoding.shapes import Box, Json

type Recipe = tuple[Any, ...]
type Pair[T] = tuple[T, T]
type Rose[T] = T | list[Rose[T]]


@dataclasses.dataclass
class Node[T]:
    """A tree, recursive and generic."""

    value: T
    children: "list[Node[T]]" = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Case:
    """A type and its values.

    Attributes:
        tp: The annotation.
        values: A strategy for values.
        some: One of the values, the same in every process.
        kinds: What the JSON of a value can be: `null`, `bool`, `number`, `text`, `array`, `object`, or for a closed
            object the pair of the keys that it must have and all that it can have. Two types whose kinds overlap are
            never alternatives of one union, since JSON might not tell them apart.
        hashable: Whether values can be keys and elements of sets.
    """

    tp: Any
    values: st.SearchStrategy[Any]
    some: Any
    kinds: frozenset[Any]
    hashable: bool = True


ANY = frozenset(("null", "bool", "number", "text", "array", "object"))


def _case(tp: Any, values: st.SearchStrategy[Any], some: Any, *kinds: Any, hashable: bool = True) -> Case:
    return Case(tp, values, some, frozenset(kinds), hashable)


# --- scalars ----------------------------------------------------------------------------------------------------------

_AWKWARD = ["", "5", "1.0", "true", "null", "NaN", "{}", "[1]", " a ", '"', "2024-01-01", "```json\n1\n```", "é\u2028"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(_AWKWARD)
INT = st.integers(-10, 10) | st.integers(-(2**80), 2**80)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
# Offsets of whole minutes: RFC 3339 has no others.
_OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda m: datetime.timezone(datetime.timedelta(minutes=m)))
_ZONES = st.none() | _OFFSETS
_PATTERNS = [("a+b", 0), (r"\d{3}", 0), ("x", re.IGNORECASE), ("^a.b$", re.DOTALL | re.MULTILINE), ("", 0)]
_JSON = st.recursive(
    st.none() | st.booleans() | INT | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
_SAFE = st.text(st.sampled_from("ab .é-_"), min_size=1, max_size=5)

SCALARS: dict[str, Callable[[], Case]] = {
    "str": lambda: _case(str, TEXT, "a", "text"),
    "bool": lambda: _case(bool, st.booleans(), True, "bool"),
    "int": lambda: _case(int, INT, 7, "number"),
    "float": lambda: _case(float, FLOAT, 0.5, "number"),
    "any float": lambda: _case(float, st.floats(), math.inf, "number", "text", hashable=False),
    "complex": lambda: _case(complex, st.complex_numbers(allow_nan=False, allow_infinity=False), 1j, *ANY),
    "none": lambda: _case(None, st.none(), None, "null"),
    "bytes": lambda: _case(bytes, st.binary(max_size=8), b"\xff\x00", "text"),
    "bytearray": lambda: _case(
        bytearray, st.binary(max_size=8).map(bytearray), bytearray(b"\xfe"), "text", hashable=False
    ),
    "decimal": lambda: _case(
        decimal.Decimal,
        st.decimals(allow_nan=False, allow_infinity=False),
        decimal.Decimal("1.50"),
        "number",
        "text",
    ),
    "fraction": lambda: _case(fractions.Fraction, st.fractions(), fractions.Fraction(1, 3), "number", "text"),
    "uuid": lambda: _case(uuid.UUID, st.uuids(), uuid.UUID(int=1), "text"),
    "path": lambda: _case(
        pathlib.Path,
        st.lists(_SAFE, max_size=3).map(lambda parts: pathlib.Path(*parts)) | st.just(pathlib.Path("/a/b")),
        pathlib.Path("a"),
        "text",
    ),
    "datetime": lambda: _case(
        datetime.datetime, st.datetimes(timezones=_ZONES), datetime.datetime(2024, 1, 2, 3, 4, 5), "number", "text"
    ),
    "date": lambda: _case(datetime.date, st.dates(), datetime.date(2024, 2, 29), "number", "text"),
    "time": lambda: _case(datetime.time, st.times(timezones=_ZONES), datetime.time(12, 30), "number", "text"),
    "timedelta": lambda: _case(
        datetime.timedelta,
        st.timedeltas(datetime.timedelta(days=-10000), datetime.timedelta(days=10000)),
        datetime.timedelta(hours=1, microseconds=1),
        "number",
        "text",
    ),
    "zone": lambda: _case(
        zoneinfo.ZoneInfo,
        st.sampled_from(["UTC", "Europe/Madrid", "America/New_York"]).map(zoneinfo.ZoneInfo),
        zoneinfo.ZoneInfo("UTC"),
        "text",
    ),
    "pattern": lambda: _case(
        re.Pattern[str], st.sampled_from(_PATTERNS).map(lambda one: re.compile(*one)), re.compile("a"), *ANY
    ),
    "json": lambda: Case(Json, _JSON, {"a": [1, None]}, ANY, hashable=False),
    "any": lambda: Case(Any, _JSON, [1, "a"], ANY, hashable=False),
    "object": lambda: Case(object, _JSON, {"a": 1}, ANY, hashable=False),
}

_ENUMS: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "numbers": (enum.Enum, {"LOW": 1, "HIGH": 2, "NONE": 0}, ("number",)),
    "texts": (enum.Enum, {"RED": "red", "DEEP": "deep blue", "NONE": ""}, ("text",)),
    "mixed": (enum.Enum, {"ONE": 1, "TEXT": "1", "HALF": 0.5}, ("number", "text")),
    "tuples": (enum.Enum, {"EARTH": (1, "a"), "MARS": (2, "b")}, ("array", "text")),
    "int": (enum.IntEnum, {"A": 1, "B": -1}, ("number",)),
    "str": (enum.StrEnum, {"A": "a", "B": "1"}, ("text",)),
    "flag": (enum.Flag, {"R": 4, "W": 2, "X": 1}, ("number", "text", "array")),
    "int flag": (enum.IntFlag, {"R": 4, "W": 2, "X": 1}, ("number", "text", "array")),
}


def _enum(flavour: str) -> Case:
    base, members, kinds = _ENUMS[flavour]
    made: Any = base(flavour.title().replace(" ", ""), members, module=__name__)
    values = st.sampled_from(list(made))
    if issubclass(base, enum.Flag):
        values = st.lists(values, max_size=3).map(lambda some: made(sum({one.value for one in some})))
    return _case(made, values, next(iter(made)), *kinds)


def _literal(*values: Any) -> Case:
    names = {bool: "bool", int: "number", str: "text", type(None): "null"}
    return _case(Literal[values], st.sampled_from(values), values[0], *(names[type(value)] for value in values))


def _literal_enum(flavour: str) -> Case:
    case = _enum(flavour)
    members = tuple(case.tp)[:2]
    return dataclasses.replace(case, tp=Literal[members], values=st.sampled_from(members))


_BOUNDED: dict[str, Callable[[], Case]] = {
    "between": lambda: _case(
        Annotated[int, annotated_types.Ge(0), annotated_types.Le(100)], st.integers(0, 100), 5, "number"
    ),
    "fives": lambda: _case(Annotated[int, annotated_types.MultipleOf(5)], INT.map(lambda n: n * 5), 5, "number"),
    "open": lambda: _case(
        Annotated[float, annotated_types.Gt(0), annotated_types.Lt(1)],
        st.floats(0, 1, exclude_min=True, exclude_max=True),
        0.5,
        "number",
    ),
    "short": lambda: _case(
        Annotated[str, annotated_types.Len(1, 5)], st.text("ab1 ", min_size=1, max_size=5), "a", "text"
    ),
    "shaped": lambda: _case(
        Annotated[str, pydantic.Field(pattern="^[a-c]+$")], st.text("abc", min_size=1, max_size=4), "a", "text"
    ),
    "few": lambda: _case(
        Annotated[list[int], annotated_types.Len(1, 3)],
        st.lists(INT, min_size=1, max_size=3),
        [1],
        "array",
        hashable=False,
    ),
    "money": lambda: _case(
        Annotated[decimal.Decimal, pydantic.Field(max_digits=6, decimal_places=2)],
        st.decimals(-1000, 1000, places=2),
        decimal.Decimal("1.50"),
        "number",
        "text",
    ),
    "told": lambda: _case(Annotated[int, pydantic.Field(description="How many.", examples=[3])], INT, 3, "number"),
    "finite": lambda: _case(Annotated[float, pydantic.AllowInfNan(False)], FLOAT, 0.5, "number"),
    "strict": lambda: _case(Annotated[int, pydantic.Strict()], INT, 1, "number"),
    "strict date": lambda: _case(
        Annotated[datetime.date, pydantic.Strict()], st.dates(), datetime.date(2024, 1, 1), "text"
    ),
}


# --- what is made of other types --------------------------------------------------------------------------------------


def _lists(origin: Any, make: Callable[[list[Any]], Any], inner: Case, hashable: bool = False) -> Case:
    return _case(
        origin[inner.tp],
        st.lists(inner.values, max_size=3).map(make),
        make([inner.some]),
        "array",
        hashable=hashable and inner.hashable,
    )


def _sets(origin: Any, make: Callable[[Any], Any], inner: Case) -> Case:
    return _case(
        origin[inner.tp],
        st.sets(inner.values, max_size=3).map(make),
        make({inner.some}),
        "array",
        hashable=make is frozenset,
    )


def _tuple(*inner: Case) -> Case:
    tp: Any = tuple[tuple(case.tp for case in inner)] if inner else tuple[()]
    values = st.tuples(*(case.values for case in inner))
    some = tuple(case.some for case in inner)
    return _case(tp, values, some, "array", "object", hashable=all(case.hashable for case in inner))


def _variadic(inner: Case) -> Case:
    return _lists(_Variadic(), tuple, inner, hashable=True)


class _Variadic:
    def __getitem__(self, tp: Any) -> Any:
        return tuple[tp, ...]


def _mapping(origin: Any, make: Callable[[dict[Any, Any]], Any], key: Case, inner: Case) -> Case:
    values = st.dictionaries(key.values, inner.values, max_size=3).map(make)
    return _case(origin[key.tp, inner.tp], values, make({key.some: inner.some}), "array", "object", hashable=False)


def _counter(key: Case) -> Case:
    values = st.dictionaries(key.values, st.integers(-3, 10**6), max_size=3).map(collections.Counter)
    return _case(
        collections.Counter[key.tp], values, collections.Counter([key.some]), "array", "object", hashable=False
    )


def _optional(inner: Case) -> Case:
    tp = Optional[inner.tp]  # noqa: UP045  # `None | None` is no type
    return Case(tp, st.none() | inner.values, inner.some, inner.kinds | {"null"}, inner.hashable)


def _union(*arms: Case) -> Case:
    """A union of those that JSON tells apart from the ones before them."""
    kept: list[Case] = []
    for arm in arms:
        if all(_apart(arm, other) for other in kept):
            kept.append(arm)
    return Case(
        typing.Union[tuple(arm.tp for arm in kept)],  # noqa: UP007
        st.one_of([arm.values for arm in kept]),
        kept[-1].some,
        frozenset().union(*(arm.kinds for arm in kept)),
        all(arm.hashable for arm in kept),
    )


def _apart(one: Case, other: Case) -> bool:
    return not any(_alike(a, b) for a in one.kinds for b in other.kinds)


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b or {a if isinstance(a, str) else "object", b if isinstance(b, str) else "object"} == {"object"}
    (needed, known), (other_needed, other_known) = a, b
    return needed <= other_known or other_needed <= known


# --- classes with fields ----------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    name: str
    case: Case
    optional: bool
    values: st.SearchStrategy[Any]


def _fields(raw: tuple[Any, ...]) -> list[_Field]:
    """Those with a default last; their values are the default itself in one of two cases."""
    made = [(name, build(recipe), optional) for name, recipe, optional in sorted(raw, key=operator.itemgetter(2))]
    return [
        _Field(name, case, optional, _copies(case) | case.values if optional else case.values)
        for name, case, optional in made
    ]


def _copies(case: Case) -> st.SearchStrategy[Any]:
    return st.builds(copy.deepcopy, st.just(case.some))


def _closed(fields: list[_Field], names: Callable[[str], str] = str) -> tuple[frozenset[str], frozenset[str]]:
    return (
        frozenset(names(field.name) for field in fields if not field.optional),
        frozenset(names(field.name) for field in fields),
    )


def _built(make: Callable[..., Any], fields: list[_Field]) -> tuple[st.SearchStrategy[Any], Any]:
    return (
        st.fixed_dictionaries({field.name: field.values for field in fields}).map(lambda values: make(**values)),
        make(**{field.name: copy.deepcopy(field.case.some) for field in fields}),
    )


def _named_tuple(name: str, *raw: Any) -> Case:
    fields = _fields(raw)
    made: Any = NamedTuple(name, [(field.name, field.case.tp) for field in fields])  # ty: ignore[invalid-type-form]
    defaults = {field.name: field.case.some for field in fields if field.optional}
    made.__new__.__defaults__ = tuple(defaults.values())
    made._field_defaults = defaults
    values, some = _built(made, fields)
    return _case(made, values, some, "array", "object", hashable=all(field.case.hashable for field in fields))


def _typed_dict(name: str, *raw: Any) -> Case:
    fields = _fields(raw)
    made: Any = TypedDict(  # ty: ignore[invalid-argument-type]
        name, {field.name: NotRequired[field.case.tp] if field.optional else field.case.tp for field in fields}
    )
    values = st.fixed_dictionaries(
        {field.name: field.values for field in fields if not field.optional},
        optional={field.name: field.values for field in fields if field.optional},
    )
    some = {field.name: field.case.some for field in fields if not field.optional}
    return _case(made, values, some, _closed(fields), hashable=False)


def _dataclass(name: str, options: str, *raw: Any) -> Case:
    fields = _fields(raw)
    settings = dict.fromkeys(options.split(), True)
    made = dataclasses.make_dataclass(
        name,
        [
            (one.name, one.case.tp, _dataclass_default(one)) if one.optional else (one.name, one.case.tp)
            for one in fields
        ],
        module=__name__,
        **settings,
    )
    values, some = _built(made, fields)
    hashable = "frozen" in settings and all(field.case.hashable for field in fields)
    return _case(made, values, some, _closed(fields), hashable=hashable)


def _dataclass_default(one: _Field) -> Any:
    if one.case.hashable:
        return dataclasses.field(default=one.case.some)
    return dataclasses.field(default_factory=lambda: copy.deepcopy(one.case.some))


def _attrs(name: str, options: str, *raw: Any) -> Case:
    fields = _fields(raw)
    settings = dict.fromkeys(options.split(), True)
    made = attrs.make_class(
        name,
        {
            one.name: attrs.field(type=one.case.tp, **({"factory": _factory(one)} if one.optional else {}))
            for one in fields
        },
        **settings,
    )
    values, some = _built(made, fields)
    return _case(made, values, some, _closed(fields), hashable=False)


def _factory(one: _Field) -> Callable[[], Any]:
    return lambda: copy.deepcopy(one.case.some)


def _model(name: str, options: str, *raw: Any) -> Case:
    fields = _fields(raw)
    chosen = options.split()
    alias = (lambda field: f"{field}-of") if "alias" in chosen else str
    config = pydantic.ConfigDict(frozen="frozen" in chosen, strict="strict" in chosen)
    definitions: dict[str, Any] = {}
    for one in fields:
        extra = {"alias": alias(one.name)} if "alias" in chosen else {}
        default = pydantic.Field(default_factory=_factory(one), **extra) if one.optional else pydantic.Field(**extra)
        definitions[one.name] = (one.case.tp, default)
    made = pydantic.create_model(name, __config__=config, __module__=__name__, **definitions)
    # Not through the validators, which make an iterator of a list, for example.
    values, some = _built(
        lambda **values: made.model_construct(**{alias(key): one for key, one in values.items()}), fields
    )
    hashable = "frozen" in chosen and all(field.case.hashable for field in fields)
    return _case(made, values, some, _closed(fields, alias), hashable=hashable)


def _root(inner: Case) -> Case:
    made = pydantic.RootModel[inner.tp]
    construct = made.model_construct
    return Case(made, inner.values.map(construct), construct(inner.some), inner.kinds, hashable=False)


def _tagged(base: str, *recipes: Recipe) -> Case:
    """A union that is told apart by the literal `kind`."""
    arms = []
    for number, inner in enumerate(map(build, recipes)):
        tag: Any = Literal[f"k{number}"]  # ty: ignore[invalid-type-form]
        if base == "model":
            made: Any = pydantic.create_model(f"Arm{number}", kind=(tag, f"k{number}"), body=(inner.tp, ...))
            make = made.model_construct
        else:
            made = dataclasses.make_dataclass(
                f"Arm{number}", [("body", inner.tp), ("kind", tag, f"k{number}")], module=__name__
            )
            make = made
        arms.append((made, st.builds(make, body=inner.values), make(body=inner.some)))
    tp = Annotated[typing.Union[tuple(arm[0] for arm in arms)], pydantic.Field(discriminator="kind")]  # noqa: UP007
    keys = frozenset(("body",)), frozenset(("body", "kind"))
    return _case(tp, st.one_of([arm[1] for arm in arms]), arms[0][2], keys, hashable=False)


def _node(inner: Case) -> Case:
    leaves = st.builds(Node, inner.values)
    values = st.recursive(leaves, lambda more: st.builds(Node, inner.values, st.lists(more, max_size=2)), max_leaves=3)
    keys = frozenset(("value",)), frozenset(("value", "children"))
    return _case(Node[inner.tp], values, Node(inner.some), keys, hashable=False)


def _rose(inner: Case) -> Case:
    if "array" in inner.kinds:  # an empty list would be either
        return _lists(list, list, inner)
    values = st.recursive(inner.values, lambda more: st.lists(more, max_size=2), max_leaves=3)
    return Case(Rose[inner.tp], values, [inner.some], inner.kinds | {"array"}, hashable=False)


def _renamed(inner: Case, tp: Any) -> Case:
    return dataclasses.replace(inner, tp=tp)


_SEQUENCES: dict[str, Callable[[Case], Case]] = {
    "list": lambda inner: _lists(list, list, inner),
    "typing.List": lambda inner: _lists(typing.List, list, inner),  # noqa: UP006
    "variadic": _variadic,
    "deque": lambda inner: _lists(collections.deque, collections.deque, inner),
    "Sequence": lambda inner: _lists(Sequence, list, inner),
    "Iterable": lambda inner: _lists(Iterable, list, inner),
    "optional": _optional,
    "root": _root,
    "box": lambda inner: Case(
        Box[inner.tp],
        st.builds(Box, inner.values),
        Box(inner.some),
        frozenset([(frozenset(["content"]), frozenset(["content"]))]),
        inner.hashable,
    ),
    "node": _node,
    "rose": _rose,
    "pair": lambda inner: _renamed(_tuple(inner, inner), Pair[inner.tp]),
    "newtype": lambda inner: _renamed(inner, typing.NewType("Renamed", inner.tp or types.NoneType)),
    "alias": lambda inner: _renamed(inner, typing.TypeAliasType("Alias", inner.tp)),
    "described": lambda inner: _renamed(inner, Annotated[inner.tp, pydantic.Field(description="What it is.")]),
    "encodable": lambda inner: _renamed(inner, Encodable[inner.tp]),
}
_SETS: dict[str, Callable[[Case], Case]] = {
    "set": lambda inner: _sets(set, set, inner),
    "frozenset": lambda inner: _sets(frozenset, frozenset, inner),
    "Set": lambda inner: _sets(collections.abc.Set, frozenset, inner),
}
_MAPPINGS: dict[str, Callable[[Case, Case], Case]] = {
    "dict": lambda key, inner: _mapping(dict, dict, key, inner),
    "Mapping": lambda key, inner: _mapping(Mapping, dict, key, inner),
    "OrderedDict": lambda key, inner: _mapping(collections.OrderedDict, collections.OrderedDict, key, inner),
    "defaultdict": lambda key, inner: _mapping(
        collections.defaultdict, lambda values: collections.defaultdict(type(inner.some), values), key, inner
    ),
}
_CLASSES: dict[str, Callable[..., Case]] = {
    "NamedTuple": _named_tuple,
    "TypedDict": _typed_dict,
    "dataclass": _dataclass,
    "attrs": _attrs,
    "model": _model,
}


def build(recipe: Recipe) -> Case:
    """The type that a recipe describes; each call makes new classes."""
    kind, *rest = recipe
    if kind in SCALARS:
        return SCALARS[kind]()
    if kind in _CLASSES:
        return _CLASSES[kind](*rest)
    match kind:
        case "enum":
            return _enum(*rest)
        case "literal":
            return _literal(*rest)
        case "literal enum":
            return _literal_enum(*rest)
        case "bounded":
            return _BOUNDED[rest[0]]()
        case "tagged":
            return _tagged(*rest)
        case "union":
            # In one order: Python takes `Union[int, str]` for `Union[str, int]` where it has made the one before.
            return _union(*map(build, sorted(rest, key=repr)))
    inner = [build(one) for one in rest]
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](*inner)
    if kind in _MAPPINGS:
        return _MAPPINGS[kind](*inner)
    return {**_SETS, "tuple": _tuple, "counter": _counter}[kind](*inner)


# --- recipes at random ------------------------------------------------------------------------------------------------

_UNHASHABLE = ("any float", "bytearray", "json", "any", "object")
_LITERALS = st.lists(
    st.sampled_from(["a", "b c", "", "1", 1, 2, -5, True, None]), min_size=1, max_size=3, unique_by=repr
).map(lambda values: ("literal", *sorted(values, key=repr)))
_FLAVOURS = st.sampled_from(sorted(_ENUMS))
_MEMBERS = st.sampled_from(["numbers", "texts", "mixed", "tuples", "int", "str"])
_HASHABLE_LEAVES = st.one_of(
    # Most of the leaves are of this branch: it counts four times.
    *(st.sampled_from(sorted(SCALARS.keys() - _UNHASHABLE)).map(lambda name: (name,)) for _ in range(4)),
    _FLAVOURS.map(lambda flavour: ("enum", flavour)),
    _LITERALS,
    _MEMBERS.map(lambda flavour: ("literal enum", flavour)),
    st.sampled_from(sorted(_BOUNDED.keys() - {"few"})).map(lambda name: ("bounded", name)),
)
_LEAVES = (
    _HASHABLE_LEAVES | st.sampled_from(sorted(_UNHASHABLE)).map(lambda name: (name,)) | st.just(("bounded", "few"))
)
_KEYS = st.one_of(
    st.sampled_from(
        [("str",), ("int",), ("bool",), ("date",), ("uuid",), ("decimal",), ("bytes",), ("literal", "a", "b")]
    ),
    _FLAVOURS.map(lambda flavour: ("enum", flavour)),
    st.just(("tuple", ("int",), ("str",))),
    st.just(("newtype", ("str",))),
    st.just(("bounded", "short")),
)
# Names that are methods of pydantic's models and of dictionaries among them; `count` and `index` are those of tuples.
_NAMES = ["a", "b", "value", "items", "kind", "type", "x_y", "size2"]


def _some_fields(inner: st.SearchStrategy[Recipe]) -> st.SearchStrategy[tuple[Any, ...]]:
    field = st.tuples(st.sampled_from(_NAMES), inner, st.booleans())
    return st.lists(field, max_size=3, unique_by=operator.itemgetter(0)).map(tuple)


def _classes(inner: st.SearchStrategy[Recipe]) -> st.SearchStrategy[Recipe]:
    fields = _some_fields(inner)
    name = st.sampled_from(["Made", "Other"])
    return st.one_of(
        st.builds(lambda name, fields: ("NamedTuple", name, *fields), name, fields),
        st.builds(lambda name, fields: ("TypedDict", name, *fields), name, fields),
        _with_options("dataclass", ["", "frozen", "slots", "kw_only", "frozen slots kw_only"], name, fields),
        _with_options("attrs", ["", "frozen", "slots", "kw_only"], name, fields),
        _with_options("model", ["", "frozen", "strict", "alias"], name, fields.map(_known)),
    )


def _with_options(
    kind: str, options: list[str], name: st.SearchStrategy[str], fields: st.SearchStrategy[Any]
) -> st.SearchStrategy[Recipe]:
    return st.builds(lambda name, chosen, fields: (kind, name, chosen, *fields), name, st.sampled_from(options), fields)


def _composites(inner: st.SearchStrategy[Recipe]) -> st.SearchStrategy[Recipe]:
    hashable = st.one_of(
        _HASHABLE_LEAVES,
        st.tuples(_HASHABLE_LEAVES, _HASHABLE_LEAVES).map(lambda parts: ("tuple", *parts)),
        _HASHABLE_LEAVES.map(lambda part: ("variadic", part)),
        _HASHABLE_LEAVES.map(lambda part: ("frozenset", part)),
        _HASHABLE_LEAVES.map(lambda part: ("dataclass", "Element", "frozen", ("a", part, False))),
    )
    return st.one_of(
        st.tuples(st.sampled_from(sorted(_SEQUENCES) + ["list", "optional"] * 4), inner).map(
            lambda made: _known(made) if made[0] == "root" else made
        ),
        st.tuples(st.sampled_from(sorted(_SETS)), hashable),
        st.tuples(st.sampled_from([*sorted(_MAPPINGS), "dict", "dict"]), _KEYS, inner),
        st.tuples(st.just("counter"), _KEYS),
        st.lists(inner, max_size=3).map(lambda parts: ("tuple", *parts)),
        st.lists(inner, min_size=2, max_size=4).map(lambda parts: ("union", *parts)),
        st.builds(
            lambda base, parts: ("tagged", base, *map(_known, parts)),
            st.sampled_from(["model", "dataclass"]),
            st.lists(inner, min_size=2, max_size=3),
        ),
        _classes(inner),
    )


# What pydantic itself refuses when a model with such a field is defined: `defaultdict` for most types of values.
_FOREIGN = {"attrs": "dataclass", "bytearray": "bytes", "defaultdict": "dict"}


def _known(recipe: Any) -> Any:
    """The recipe with what pydantic knows in place of what it does not."""
    if not isinstance(recipe, tuple):
        return recipe
    return tuple(
        _FOREIGN.get(part, part) if isinstance(part, str) and place == 0 else _known(part)
        for place, part in enumerate(recipe)
    )


def recipes(depth: int = 4) -> st.SearchStrategy[Recipe]:
    """Recipes of types that are nested at most this deep."""
    return _LEAVES if depth == 0 else _LEAVES | _composites(recipes(depth - 1))
