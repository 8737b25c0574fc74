"""From what classes of restricted code may derive."""

from __future__ import annotations

import abc
import array
import calendar
import collections
import collections.abc
import contextlib
import csv
import datetime
import decimal
import difflib
import enum
import fractions
import graphlib
import html.parser
import io
import json
import numbers
import pprint
import queue
import random
import string
import textwrap
import types
import typing
import uuid
from typing import Any

from effectful_agents.handlers.execution.callables import Guarded, guarded
from effectful_agents.handlers.execution.kinds import REPLACED, is_inside, is_own
from effectful_agents.handlers.execution.metaclasses import OfMetaclasses
from effectful_agents.handlers.execution.models import is_model
from effectful_agents.handlers.execution.names import is_standard

__all__ = ["base_of", "bases_of"]

# A class of the library believes what its objects say, since it was not written for classes that lie. These were looked
# at. What calls what it is given, has its attributes written into source code, reads attributes by names that a class
# could choose, or remembers things for the whole program, is not among them.
_FIT = (
    *(object, Exception, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset),
    *(property, classmethod, staticmethod),
    *(abc.ABC, typing.Generic, typing.Protocol, types.SimpleNamespace),
    *(enum.Enum, enum.IntEnum, enum.StrEnum, enum.ReprEnum, enum.Flag, enum.IntFlag),
    *(collections.ChainMap, collections.Counter, collections.OrderedDict, collections.UserDict, collections.UserList),
    *(collections.defaultdict, collections.deque, array.array),
    *(contextlib.AbstractContextManager, contextlib.ContextDecorator, contextlib.ExitStack),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.tzinfo),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, random.Random),
    *(io.StringIO, io.BytesIO, string.Formatter, string.Template, textwrap.TextWrapper, pprint.PrettyPrinter),
    *(json.JSONEncoder, json.JSONDecoder, html.parser.HTMLParser),
    *(csv.Dialect, csv.excel, csv.excel_tab, csv.unix_dialect, csv.DictReader, csv.DictWriter),
    *(calendar.Calendar, calendar.TextCalendar, calendar.HTMLCalendar),
    *(difflib.SequenceMatcher, difflib.Differ, difflib.HtmlDiff, graphlib.TopologicalSorter),
    *(queue.Queue, queue.LifoQueue, queue.PriorityQueue, queue.SimpleQueue),
    *(numbers.Number, numbers.Complex, numbers.Real),
    *(getattr(collections.abc, name) for name in collections.abc.__all__),
)
"""The classes of the library from which a class of the code may derive, beside exceptions."""

_fit: set[type] = set()


def _is_fit(cls: type) -> bool:
    """Whether a class among the ancestors of one of the code does no harm there, or is none of the library."""
    if not _fit:
        for one in _FIT:
            for each in (one, REPLACED[id(one)][1] if id(one) in REPLACED else one):
                _fit.update(each.__mro__)
    if cls in _fit or is_own(cls) or not is_standard(cls.__module__):
        return True
    return issubclass(cls, Exception) and (cls.__module__ == "builtins" or is_inside(cls.__module__))


def bases_of(bases: Any) -> tuple[Any, ...]:
    """What a class derives from where the code says that it derives from these.

    Raises:
        TypeError: From one of these nothing can be derived here, or not together with the others.
    """
    found = tuple([base_of(base) for base in bases])
    kinds = [base for base in found if isinstance(base, type)]
    if any(isinstance(base, enum.EnumType) for base in kinds) and any(
        issubclass(base, types.SimpleNamespace) for base in kinds
    ):
        raise TypeError("the members of an enumeration cannot be namespaces here: their values would be attributes.")
    return found


def base_of(base: Any) -> Any:
    """What a class derives from where the code says that it derives from this.

    Raises:
        TypeError: From this nothing can be derived here.
    """
    if type(base) is Guarded:
        base = base._function
    if isinstance(base, type):
        if type(base) is OfMetaclasses or type.__subclasscheck__(type, base):
            raise TypeError(
                "a metaclass cannot be made here; `__init_subclass__` sees each class that derives from one, "
                "and a decorator may change a class or keep its only object."
            )
        guarded(base)
        if is_model(base):
            raise TypeError(f"a class here cannot derive from the model `{base.__name__}`; write one that holds it.")
        if issubclass(base, ImportError):  # who shows one imports the module that it says it is about
            raise TypeError(f"a class here cannot derive from `{base.__name__}`; derive from another `Exception`.")
        if not all(map(_is_fit, base.__mro__)):
            raise TypeError(f"a class here cannot derive from `{base.__name__}`; write one that holds it.")
    else:
        # A generic class with its arguments, or an alias: what stands for it among the bases is its class.
        if is_own(type(base)) or isinstance(base, types.SimpleNamespace):
            raise TypeError("a class here can only derive from classes.")  # `__mro_entries__` could name any
        origin = getattr(base, "__origin__", None) if is_standard(type(base).__module__) else None
        if origin is not None:
            base_of(origin)
    return REPLACED[id(base)][1] if id(base) in REPLACED else base
