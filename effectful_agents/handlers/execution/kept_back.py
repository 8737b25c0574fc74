"""What Python has and restricted code has not: what is told to code that names it, so that it can do without."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["KEPT_BACK", "instead", "not_available"]

_FILES = "there are no files here; work on the values that you have, `io.StringIO` takes and holds text"
_EVALUATED = "no text is run here; write the code itself, `ast.literal_eval` and `json.loads` read values"
_NAMES_OF_SCOPES = "keep what you want to look up by name in a dictionary of your own"
_ENDING = "code cannot end the program; let it come to its end, or raise an `Exception`"
_NO_ASYNC = "there is no `async` here; call what you need"
_NO_NETWORK = "nothing here reaches the network; use the tools that you have"
_NO_MACHINE = "nothing here reaches the machine; use the values and tools that you have"
_NO_THREADS = "code here runs in one thread, one thing after the other"
_ARRAYS = "use lists with `statistics`, `math` and `itertools`"
_NO_INTERPRETER = (
    "nothing here reaches the interpreter; `math.inf` is more than each number, `print` writes, "
    "and the limit of recursion stays as it is"
)
_ERRORS = "`type(error).__name__`, `error.args` and `error.__cause__` say what went wrong"

_NAMES: Mapping[str, str] = {
    "open": _FILES,
    "input": "nobody answers; use the values that you have",
    "eval": _EVALUATED,
    "exec": _EVALUATED,
    "compile": f"{_EVALUATED}. Of regular expressions it is `re.compile`",
    "globals": _NAMES_OF_SCOPES,
    "locals": _NAMES_OF_SCOPES,
    "vars": "`vars(value)` is called where it is written, with one object",
    "dir": "`dir(value)` is called where it is written, with one value",
    "exit": _ENDING,
    "quit": _ENDING,
    "help": "`print(f.__doc__)` shows what is said of a function, and `dir(value)` names what a value has",
    "breakpoint": "there is no debugger; `print` what you want to see",
    "aiter": _NO_ASYNC,
    "anext": _NO_ASYNC,
    "__import__": "write an `import` statement",
    "SystemExit": _ENDING,
    "KeyboardInterrupt": "raise an `Exception`",
    "GeneratorExit": "a generator ends with `return`, and `finally` cleans up",
    "BaseException": "use `Exception`",
    "BaseExceptionGroup": "use `ExceptionGroup`",
}

_ATTRIBUTES: Mapping[str, str] = {
    "__class__": "write `type(x)`",
    "__dict__": "write `vars(x)`, or `getattr` and `setattr`",
    "__module__": "all that you define is in `__main__`",
    "__annotations__": "it can only be read; annotate where you define",
    "__import__": "write an `import` statement",
    "__traceback__": _ERRORS,
    "__mro__": "`isinstance` and `issubclass` tell what a class derives from",
    "__bases__": "`isinstance` and `issubclass` tell what a class derives from",
    "__base__": "`isinstance` and `issubclass` tell what a class derives from",
    "mro": "`isinstance` and `issubclass` tell what a class derives from",
    "__subclasses__": "keep the classes in a list of your own; `__init_subclass__` may add them to it",
    "__dataclass_fields__": "use `dataclasses.fields`",
    "__wrapped__": "keep the function under a name of its own",
    "__defaults__": "keep the values under a name of their own",
    "__del__": "use a `with` block, or `try` and `finally`",
    "__getattribute__": "define `__getattr__`, or a property",
    "__dir__": "`dir(value)` works for every object",
    "__prepare__": "use `__init_subclass__`, `__set_name__` or a decorator of the class",
    "__subclasshook__": "`register` adds a class to an abstract one, and `runtime_checkable` looks at what it has",
    "__match_args__": "name what you match, or derive from a `dataclass`",
    "__instancecheck__": "derive from the class, or compare what you need",
    "__subclasscheck__": "derive from the class, or compare what you need",
    **dict.fromkeys(("__aenter__", "__aexit__", "__aiter__", "__anext__", "__await__"), _NO_ASYNC),
    **dict.fromkeys(("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"), "define `__copy__`"),
}

_MODULES: Mapping[str, str] = {
    **dict.fromkeys(("os", "pathlib", "shutil", "glob", "tempfile", "fileinput", "zipfile", "tarfile", "gzip"), _FILES),
    **dict.fromkeys(("subprocess", "platform", "signal", "ctypes", "resource", "gc"), _NO_MACHINE),
    **dict.fromkeys(("socket", "http", "requests", "httpx", "aiohttp", "urllib", "ssl", "smtplib"), _NO_NETWORK),
    **dict.fromkeys(("threading", "multiprocessing", "concurrent", "asyncio", "trio", "anyio"), _NO_THREADS),
    **dict.fromkeys(("numpy", "pandas", "scipy", "polars"), _ARRAYS),
    **dict.fromkeys(("pickle", "marshal", "shelve", "yaml"), "`json` writes and reads values"),
    **dict.fromkeys(("traceback", "inspect", "dis"), _ERRORS),
    **dict.fromkeys(("logging", "warnings"), "`print` what you want to see"),
    "sys": _NO_INTERPRETER,
    "zlib": "nothing here packs or unpacks; `hashlib` makes checksums, and `base64` makes texts of bytes",
    "typing_extensions": "`typing` has what there is",
    "dateutil": "use `datetime`",
    "xml": "`html.parser` and `re` read what is marked up",
    "bs4": "`html.parser` and `re` read what is marked up",
    "importlib": "write an `import` statement",
    "builtins": "call them by their names",
    **dict.fromkeys(("pydantic", "attrs", "attr", "msgspec"), "use `dataclasses`"),
    **dict.fromkeys(("unittest", "pytest", "doctest"), "`assert` what is to hold"),
    **dict.fromkeys(("timeit", "cProfile", "profile", "sched"), "`time.perf_counter` measures"),
    **dict.fromkeys(("argparse", "optparse", "getopt", "getpass", "atexit"), "use the values that you have"),
    **dict.fromkeys(("weakref", "contextvars"), "keep values in attributes and dictionaries"),
    **dict.fromkeys(("sqlite3", "dbm"), "keep rows in lists and dictionaries; `itertools.groupby` and `sorted` query"),
    "bz2": "nothing here packs or unpacks",
    "lzma": "nothing here packs or unpacks",
    "codecs": "texts have `encode`, and bytes have `decode`",
    "configparser": "`tomllib.loads` reads settings, or `re` and `str.partition`",
    "locale": "`f'{number:,}'` writes the thousands apart",
    "more_itertools": "use `itertools`",
    "reprlib": "use `textwrap.shorten`",
    "sortedcontainers": "`bisect.insort` keeps a list in order",
    "sympy": "use `fractions`, `math` and `cmath`",
    "networkx": "use `graphlib`, or a dictionary of sets",
    "tokenize": "`re` finds tokens",
}


_IN_MODULES: Mapping[str, str] = {
    "time.sleep": "nothing here waits; leave it out, or count the seconds in a variable",
    "random.SystemRandom": "use `secrets`, or `random.Random`",
    "secrets.SystemRandom": "use `secrets.choice` and `secrets.randbelow`",
    "secrets.randbits": "use `secrets.randbelow(2**k)`",
    "csv.register_dialect": "give `reader` and `writer` a class that derives from `csv.Dialect`, or its settings",
    "calendar.setfirstweekday": "use `calendar.TextCalendar(6)`, whose weeks begin on a Sunday",
    "calendar.prmonth": "use `print(calendar.month(year, month))`",
    "calendar.prcal": "use `print(calendar.calendar(year))`",
    "ast.parse": "no source is taken apart here; write a small parser, `re` finds its tokens",
    "collections.UserString": "derive from `str`",
    "contextlib.asynccontextmanager": _NO_ASYNC,
    "contextlib.redirect_stderr": "`redirect_stdout` takes what is printed",
    "hashlib.pbkdf2_hmac": "use `hmac.new` in a loop",
    "hashlib.scrypt": "use `hmac.new` in a loop",
    "io.TextIOWrapper": "`io.StringIO` takes and holds text",
    "io.open": _FILES,
    "types.new_class": "write a `class` statement",
    "types.coroutine": _NO_ASYNC,
    "tomllib.load": "use `tomllib.loads`",
    "uuid.uuid1": "use `uuid.uuid4`",
    "uuid.getnode": "use `uuid.uuid4`",
}


def instead(kind: str, name: str) -> str:
    """What to write instead, with a colon before it; empty where there is nothing to say.

    >>> instead("name", "globals")
    ': keep what you want to look up by name in a dictionary of your own'
    """
    told = {"name": _NAMES, "attribute": _ATTRIBUTES, "module": _MODULES, "in a module": _IN_MODULES}[kind]
    advice = told.get(name.partition(".")[0] if kind == "module" else name)
    return f": {advice}" if advice else ""


def not_available(name: str) -> str:
    """That a name of Python's is not available, and what to write instead."""
    return f"`{name}` is not available here{instead('name', name)}."


KEPT_BACK = frozenset(_NAMES)
"""Names of Python's that restricted code has not, unless it binds them itself."""
