"""What becomes longer when it is put in capitals, escaped, quoted or encoded is measured before it is made."""

from __future__ import annotations

import html
import json
import unicodedata
import urllib.parse

import pytest

from effectful_agents.errors import CodeStopped
from effectful_agents.handlers.execution import RestrictedPythonExecutor
from tests.sandbox.running import run, value_of

SMALL = RestrictedPythonExecutor(size=100_000)
TEXTS = "n = 90_000\nt = '\u0149' * n\nz = '\\0' * n\ne = '\U0001f600' * n\nq = '\"' * n\nb = b'x' * n\n"

GROWING = {
    "capitals": "t.upper()",
    "capitals of a bare method": "str.upper(t)",
    "capitals by map": "''.join(map(str.swapcase, [t]))",
    "folded": "t.casefold()",
    "capitals of a class of its own": "S(t).upper()",
    "a normal form": "unicodedata.normalize('NFKC', '\ufdfa' * 20_000)",
    "whether it has one": "unicodedata.is_normalized('NFKD', '\ufdfa' * 20_000)",
    "repr": "repr(z)",
    "repr of a list": "repr([z])",
    "str of a list": "str([[z]])",
    "ascii": "ascii(e)",
    "a field": "f'{z!r}'",
    "another field": "f'{e!a}'",
    "percent": "'%r' % z",
    "percent of several": "'%s %a' % (1, e)",
    "format": "'{!r}'.format(z)",
    "format by a name": "'{x!a}'.format_map({'x': e})",
    "Formatter": "string.Formatter().format('{!r}', z)",
    "Template": "string.Template('$a').substitute(a=[z])",
    "a special method": "z.__repr__()",
    "pformat": "pprint.pformat(z)",
    "an error": "str(ValueError(z))",
    "JSON": "json.dumps(e)",
    "JSON of rows": "json.dumps([{'a': z}])",
    "JSON of many": "json.dumps(['\\0' * 9 for _ in range(4_000)])",
    "an encoder": "json.JSONEncoder().encode([t])",
    "encoded": "e.encode()",
    "encoded with names": "e.encode('ascii', 'namereplace')",
    "encoded by a bare method": "str.encode(e, 'utf-32')",
    "bytes": "bytes(e, 'utf-8')",
    "decoded": "(b'\\xff' * n).decode('ascii', 'backslashreplace')",
    "HTML": "html.escape(q)",
    "an address": "urllib.parse.quote(e)",
    "a query": "urllib.parse.urlencode({'a': e})",
    "a command": 'shlex.join(["\'" * n])',
    "a pattern": "re.escape('.' * n)",
    "another pattern": "fnmatch.translate('*x' * (n // 2))",
    "base 64": "base64.b64encode(b)",
    "base 16": "base64.b16encode(b)",
    "digits": "binascii.hexlify(b)",
    "digits of bytes": "b.hex()",
    "digits of a view": "memoryview(b).hex()",
    "indented": "textwrap.indent('a\\n' * (n // 2), ' ' * 8)",
    "tabs": "textwrap.wrap('\\t' * n)",
}
MODULES = (
    *("base64", "binascii", "fnmatch", "html", "json", "pprint", "re", "shlex", "string", "textwrap"),
    *("unicodedata", "urllib.parse"),
)
BEFORE = "".join([f"import {name}\n" for name in MODULES]) + TEXTS + "class S(str): pass\n"


@pytest.mark.parametrize("name", GROWING)
def test_what_would_grow_too_large_is_not_made(name):
    with pytest.raises(CodeStopped) as stopped:
        run(f"{BEFORE}got = {GROWING[name]}", executor=SMALL)
    assert stopped.value.limit == "size"


def test_large_texts_that_do_not_grow_are_made_as_elsewhere():
    names = run(
        "import html, json, unicodedata, urllib.parse\ns = 'Grün '\nx = s * 12_000\n"
        "got = [x.upper(), x.title(), html.escape(x), unicodedata.normalize('NFC', x), x.encode()]\n"
        "got += [json.dumps(x, ensure_ascii=False), repr(x), urllib.parse.quote(s * 3_000)]\n"
        "got += [list(map(str.lower, [x, s]))]",
        executor=SMALL,
    )
    x = "Grün " * 12_000
    assert names["got"] == [
        *(x.upper(), x.title(), html.escape(x), unicodedata.normalize("NFC", x), x.encode()),
        *(json.dumps(x, ensure_ascii=False), repr(x), urllib.parse.quote("Grün " * 3_000), [x.lower(), "grün "]),
    ]


@pytest.mark.parametrize("text", ["ß", "ŉ a", "\0", "\U0001f600", "it's", "İ"])
def test_short_texts_are_as_elsewhere(text):
    for expression in ("t.upper()", "t.title()", "repr(t)", "ascii(t)", "f'{t!a}'", "'%r' % t", "t.encode()"):
        assert value_of(expression, {"t": text}) == eval(expression, {"t": text})
