"""The modules that restricted code may import, and the names of each that were looked at.

What is not here is not there. Left out is what waits, opens files, asks the machine, changes a state that the program
shares, evaluates texts, or makes classes of them; some of it comes back in a version that the guards can see
(`standard`, `numeric`, `streams`, `texts`).
"""

from __future__ import annotations

import copy
import importlib
import types
from collections.abc import Mapping, Sequence
from typing import Any

from effectful_agents.handlers.execution import (
    contexts,
    metaclasses,
    numeric,
    printing,
    quoting,  # noqa: F401 - it replaces functions
    sizes,
    standard,
    streams,
    texts,  # noqa: F401 - it replaces functions
)
from effectful_agents.handlers.execution.attributes import SHARED
from effectful_agents.handlers.execution.kinds import (
    ALLOWED_MODULES,
    MODULES,
    REPLACED,
    SANDBOX,
    VETTED,
    SafeModule,
    check_value,
    is_closed,
    safe_module,
)

__all__ = ["guarded_import"]

_ALL_PUBLIC = object()
"""All of a module's public functions, classes and constants: it is arithmetic and nothing else."""

_NAMES: Mapping[str, Any] = {
    "__future__": "annotations division absolute_import print_function unicode_literals with_statement generator_stop",
    "abc": "ABC ABCMeta abstractmethod",
    "array": "array ArrayType typecodes",
    "ast": "literal_eval",
    "base64": "b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode b64encode b85decode "
    "b85encode a85decode a85encode decodebytes encodebytes standard_b64decode standard_b64encode urlsafe_b64decode "
    "urlsafe_b64encode z85decode z85encode",
    "binascii": _ALL_PUBLIC,
    "bisect": _ALL_PUBLIC,
    "calendar": "Calendar TextCalendar HTMLCalendar IllegalMonthError IllegalWeekdayError Day Month MONDAY TUESDAY "
    "WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER "
    "NOVEMBER DECEMBER calendar day_abbr day_name firstweekday isleap leapdays month month_abbr month_name "
    "monthcalendar monthrange timegm weekday weekheader",
    "cmath": _ALL_PUBLIC,
    "collections": "ChainMap Counter OrderedDict UserDict UserList defaultdict deque namedtuple",
    "collections.abc": _ALL_PUBLIC,
    "colorsys": _ALL_PUBLIC,
    "contextlib": "AbstractContextManager ContextDecorator ExitStack closing contextmanager nullcontext "
    "redirect_stdout suppress",
    "copy": "Error copy deepcopy replace",
    "csv": "Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC QUOTE_NOTNULL "
    "QUOTE_STRINGS Sniffer excel excel_tab get_dialect list_dialects reader unix_dialect writer",
    "dataclasses": "Field FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple dataclass field fields "
    "is_dataclass make_dataclass replace",
    "datetime": "MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo",
    "decimal": "Clamped Context Decimal DecimalException DecimalTuple DivisionByZero FloatOperation Inexact "
    "InvalidOperation Overflow ROUND_05UP ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN "
    "ROUND_HALF_UP ROUND_UP Rounded Subnormal Underflow MAX_EMAX MAX_PREC MIN_EMIN MIN_ETINY getcontext localcontext "
    "setcontext",
    "difflib": "Differ HtmlDiff IS_CHARACTER_JUNK IS_LINE_JUNK Match SequenceMatcher context_diff diff_bytes "
    "get_close_matches ndiff restore unified_diff",
    "enum": "CONFORM CONTINUOUS EJECT Enum EnumCheck EnumMeta EnumType Flag FlagBoundary IntEnum IntFlag KEEP "
    "NAMED_FLAGS ReprEnum STRICT StrEnum UNIQUE auto member nonmember property unique verify",
    "fnmatch": "filter fnmatch fnmatchcase translate",
    "fractions": "Fraction",
    "functools": "WRAPPER_ASSIGNMENTS WRAPPER_UPDATES cache cached_property cmp_to_key lru_cache partial partialmethod "
    "reduce singledispatch singledispatchmethod total_ordering update_wrapper wraps",
    "graphlib": "CycleError TopologicalSorter",
    "hashlib": "algorithms_available algorithms_guaranteed blake2b blake2s md5 new sha1 sha224 sha256 sha384 sha3_224 "
    "sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256",
    "heapq": "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest",
    "hmac": "HMAC compare_digest digest new",
    "html": "escape unescape",
    "html.parser": "HTMLParser",
    "io": "BytesIO SEEK_CUR SEEK_END SEEK_SET StringIO",
    "ipaddress": _ALL_PUBLIC,
    "itertools": _ALL_PUBLIC,
    "json": "JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads",
    "keyword": "iskeyword issoftkeyword kwlist softkwlist",
    "math": _ALL_PUBLIC,
    "numbers": "Complex Integral Number Rational Real",
    "operator": _ALL_PUBLIC,
    "pprint": "PrettyPrinter isreadable isrecursive pformat pp pprint saferepr",
    "queue": "Empty Full LifoQueue PriorityQueue Queue ShutDown SimpleQueue",
    "random": "Random betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits getstate "
    "lognormvariate normalvariate paretovariate randbytes randint random randrange sample seed setstate shuffle "
    "triangular uniform vonmisesvariate weibullvariate",
    "re": "A ASCII DOTALL I IGNORECASE M MULTILINE Match NOFLAG Pattern PatternError RegexFlag S U UNICODE VERBOSE X "
    "compile error escape findall finditer fullmatch match search split sub subn",
    "secrets": "choice compare_digest randbelow token_bytes token_hex token_urlsafe",
    "shlex": "join quote split",
    "statistics": "NormalDist StatisticsError correlation covariance fmean geometric_mean harmonic_mean kde "
    "kde_random linear_regression mean median median_grouped median_high median_low mode multimode pstdev pvariance "
    "quantiles stdev variance",
    "string": "Formatter Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits "
    "printable punctuation whitespace",
    "struct": "Struct calcsize error iter_unpack pack pack_into unpack unpack_from",
    "textwrap": "TextWrapper dedent fill indent shorten wrap",
    "time": "altzone asctime ctime daylight gmtime localtime mktime monotonic monotonic_ns perf_counter "
    "perf_counter_ns process_time process_time_ns strftime strptime struct_time time time_ns timezone tzname",
    "tomllib": "TOMLDecodeError loads",
    "types": "BuiltinFunctionType EllipsisType FunctionType GeneratorType GenericAlias LambdaType MappingProxyType "
    "MethodType ModuleType NoneType NotImplementedType SimpleNamespace UnionType",
    "typing": "AbstractSet Annotated Any AnyStr AsyncContextManager AsyncGenerator AsyncIterable AsyncIterator "
    "Awaitable BinaryIO ByteString Callable ChainMap ClassVar Collection Concatenate Container "
    "ContextManager Coroutine Counter DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable "
    "IO ItemsView Iterable Iterator KeysView List Literal LiteralString Mapping MappingView Match "
    "MutableMapping MutableSequence MutableSet NamedTuple Never NewType NoDefault NoReturn NotRequired "
    "Optional OrderedDict ParamSpec Pattern Protocol ReadOnly Required Reversible Self Sequence Set Sized "
    "SupportsAbs SupportsBytes SupportsComplex SupportsFloat SupportsIndex SupportsInt SupportsRound "
    "TYPE_CHECKING Text TextIO Tuple Type TypeAlias TypeAliasType TypeGuard TypeIs TypeVar TypeVarTuple "
    "TypedDict Union Unpack ValuesView assert_never assert_type cast final get_args get_origin "
    "get_type_hints is_typeddict no_type_check overload override runtime_checkable",
    "unicodedata": "bidirectional category combining decimal decomposition digit east_asian_width is_normalized lookup "
    "mirrored name normalize numeric unidata_version",
    "urllib.parse": "ParseResult SplitResult parse_qs parse_qsl quote quote_from_bytes quote_plus unquote unquote_plus "
    "unquote_to_bytes urldefrag urlencode urljoin urlparse urlsplit urlunparse urlunsplit",
    "uuid": "NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 RESERVED_FUTURE RESERVED_MICROSOFT RESERVED_NCS "
    "RFC_4122 SafeUUID UUID uuid3 uuid4 uuid5",
    "zoneinfo": "ZoneInfo ZoneInfoNotFoundError available_timezones",
}

_COUNTED = ["count", "repeat", "product", "permutations", "combinations", "combinations_with_replacement"]
"""Iterators that never end, or go on for very long."""

_INSTEAD: dict[str, dict[str, Any]] = {
    "itertools": {
        **{name: streams.counted_values(getattr(importlib.import_module("itertools"), name)) for name in _COUNTED},
        "batched": streams.batched,
        "chain": streams.chain,
        "cycle": streams.cycle,
        "tee": streams.tee,
    },
    "random": {
        name: getattr(numeric.RANDOM, name) for name in _NAMES["random"].split() if hasattr(numeric.RANDOM, name)
    },
    "functools": {"WRAPPER_ASSIGNMENTS": standard._UPDATED, "WRAPPER_UPDATES": ()},
    "contextlib": {"ExitStack": contexts.ExitStack, "redirect_stdout": printing.redirect_stdout},
    "decimal": {"MAX_PREC": 100_000, "MAX_EMAX": sizes.MAX_EXPONENT, "MIN_EMIN": -sizes.MAX_EXPONENT},
}
_INSTEAD["random"]["Random"] = type(numeric.RANDOM)


def _public(module: types.ModuleType) -> list[str]:
    names: Sequence[str] = getattr(module, "__all__", None) or [name for name in dir(module) if name[0] != "_"]
    return [name for name in names if not isinstance(getattr(module, name), types.ModuleType)]


def _changeable(cls: type) -> list[str]:
    return [name for base in cls.__mro__ for name, value in vars(base).items() if type(value) in (dict, list, set)]


def _made(name: str) -> SafeModule:
    module = importlib.import_module(name)
    wanted = _NAMES[name]
    safe = SafeModule(name, module.__doc__)
    names = _public(module) if wanted is _ALL_PUBLIC else wanted.split()
    for each in names:
        value = _INSTEAD.get(name, {}).get(each)
        if value is None and hasattr(module, each):
            value = getattr(module, each)
            value = REPLACED[id(value)][1] if id(value) in REPLACED else value
        if value is not None:
            if isinstance(value, list | dict | set):
                value = copy.copy(value)  # the program's own stays as it is
            safe.__dict__[each] = value
            if isinstance(value, type):
                SHARED.update(_changeable(value))
            if callable(value) and not (isinstance(value, type) and is_closed(value)):
                VETTED.add(id(value))
    return safe


def _load() -> None:
    for name in sorted(ALLOWED_MODULES):
        MODULES[name] = _made(name)
        parent, _, child = name.rpartition(".")
        if parent:
            MODULES.setdefault(parent, SafeModule(parent)).__dict__[child] = MODULES[name]
    # Counted iterators stand for those that are not, should one of these be met in another way.
    itertools = importlib.import_module("itertools")
    for name, value in _INSTEAD["itertools"].items():
        REPLACED[id(getattr(itertools, name))] = (getattr(itertools, name), value)


_load()
assert MODULES["abc"].ABCMeta is metaclasses.ABCMeta_

_FOR_THE_INTERPRETER = frozenset({"time", "_strptime", "datetime", "collections.abc", "encodings", "_io"})
"""What functions in C import for themselves, `strftime` for one, by the `__import__` of the code that calls them."""


def guarded_import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
) -> Any:
    """`__import__`, as an import statement calls it.

    Raises:
        ImportError: The module is not allowed, or the import is relative: the code is in no package.
    """
    if type(fromlist) is list:
        # An import statement gives a tuple or None. A list is given by the interpreter, which then takes the module
        # from `sys.modules` and lets what is returned here go.
        if name in _FOR_THE_INTERPRETER or name in ALLOWED_MODULES:
            importlib.import_module(name)
            return None
        raise ImportError(f"the module `{name}` is not available here.")
    if level:
        raise ImportError("a relative import is not possible here: the code is in no package.")
    module = safe_module(name)
    if fromlist:
        for each in fromlist:
            try:
                check_value(getattr(module, each))
            except AttributeError as error:
                raise ImportError(str(error), name=name) from None
        return module
    return safe_module(name.partition(".")[0])


assert SANDBOX not in ALLOWED_MODULES
