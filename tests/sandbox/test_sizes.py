"""What is too large is not built, in whatever way the code goes about it."""

from __future__ import annotations

import pytest

from effectful_agents.errors import CodeStopped
from effectful_agents.handlers.execution import RestrictedPythonExecutor
from tests.sandbox.running import run

SMALL = RestrictedPythonExecutor(size=50_000, seconds=60)
LAUGHS = "x = ['ha'] * 10\nfor _ in range(9): x = [x] * 10\n"

HUGE = {
    "a power": "10 ** 10 ** 10",
    "a power by pow": "pow(10, 10 ** 10)",
    "a power of a special method": "(10).__pow__(10 ** 10)",
    "a shift": "1 << 10 ** 12",
    "a product": "(1 << 4 * 10 ** 5) * (1 << 4 * 10 ** 5)",
    "a factorial": "import math\nmath.factorial(10 ** 9)",
    "binomials": "import math\nmath.comb(10 ** 9, 5 * 10 ** 8)",
    "permutations": "import math\nmath.perm(10 ** 9)",
    "a product of many": "import math\nmath.prod([1 << 10 ** 5] * 20)",
    "a repeated text": "'a' * 10 ** 10",
    "a repeated list": "10 ** 10 * [0]",
    "a repeated list in place": "x = [0]\nx *= 10 ** 10",
    "an item in place": "d = {'a': 'b'}\nd['a'] *= 10 ** 10",
    "an attribute in place": "class C: x = 'b'\nC.x *= 10 ** 10",
    "by an operator function": "import operator\noperator.mul('a', 10 ** 10)",
    "by reduce": "import functools, operator\nfunctools.reduce(operator.mul, ['a', 10 ** 4, 10 ** 4])",
    "by a special method": "'a'.__mul__(10 ** 10)",
    "by a bare special method": "str.__mul__('a', 10 ** 10)",
    "doubling": "x = 'a'\nfor _ in range(99): x = x + x",
    "doubling in place": "x = [1]\nfor _ in range(99): x += x",
    "doubling by extend": "x = [1]\nfor _ in range(99): x.extend(x)",
    "padding": "'a'.ljust(10 ** 10)",
    "padding by map": "list(map('a'.center, [10 ** 10]))",
    "padding with noughts": "'1'.zfill(10 ** 10)",
    "tabs": "'\\t'.expandtabs(10 ** 10)",
    "replacing": "('a' * 10 ** 5).replace('a', 'b' * 10 ** 5)",
    "joining": "('b' * 10 ** 5).join(['a'] * 10 ** 5)",
    "translating": "('a' * 10 ** 5).translate({97: 'b' * 10 ** 5})",
    "an f-string": "f'{1:>10000000000}'",
    "an f-string with a width": "w = 10 ** 10\nf'{1:>{w}}'",
    "a format": "format(1, '10000000000')",
    "a template": "'{:>10000000000}'.format(1)",
    "a template with a width": "'{:>{}}'.format(1, 10 ** 10)",
    "a percent format": "'%10000000000d' % 1",
    "a percent format with a width": "'%*d' % (10 ** 10, 1)",
    "a list of a range": "list(range(10 ** 10))",
    "a list of a map": "list(map(abs, range(10 ** 10)))",
    "a set of a generator": "import itertools\nset(itertools.islice(itertools.count(), 10 ** 9))",
    "a sorted range": "sorted(range(10 ** 10))",
    "bytes": "bytes(10 ** 10)",
    "a bytearray": "bytearray(10 ** 10)",
    "bytes of a number": "(1).to_bytes(10 ** 10, 'big')",
    "packed bytes": "import struct\nstruct.pack('10000000000x')",
    "random bytes": "import random\nrandom.randbytes(10 ** 10)",
    "random choices": "import random\nrandom.choices([1], k=10 ** 10)",
    "an integer of a decimal": "from decimal import Decimal\nint(Decimal('1e10000000000'))",
    "a power of a fraction": "from fractions import Fraction\nFraction(3, 2) ** 10 ** 9",
    "separators": "import json\njson.dumps([1] * 500, separators=('a' * 1000, 'b'))",
    "separators of an encoder": "import json\njson.JSONEncoder(separators=('a' * 1000, 'b')).encode([1] * 500)",
    "answers for JSON": "import json\njson.dumps([object()] * 100, default=lambda o: 'a' * 1000)",
    "answers of an encoder": (
        "import json\nclass E(json.JSONEncoder):\n  def default(self, o): return 'a' * 1000\n"
        "json.dumps([object()] * 100, cls=E)"
    ),
    "a format of a decimal by method": "from decimal import Decimal\nDecimal(1).__format__('300000000')",
    "a format of a decimal by class": "from decimal import Decimal\nDecimal.__format__(Decimal(1), '300000000')",
    "a format of decimals": "from decimal import Decimal\nlist(map(Decimal.__format__, [Decimal(1)], ['300000000']))",
    "a format of a complex number": "(1j).__format__('300000000')",
    "a format of a fraction by method": "from fractions import Fraction\nFraction(1).__format__('300000000')",
    "a format of a fraction by class": "from fractions import Fraction\nFraction.__format__(Fraction(1), '300000000')",
    "a format of a time by method": "import datetime\ndatetime.datetime(2024, 1, 1).__format__('%A %B' * 20_000)",
    "indentation": "import json\njson.dumps([1], indent=10 ** 10)",
    "a list of a range, by an alias": "list[int](range(10 ** 10))",
    "a list of a range, by a cache": "import functools\nfunctools.cache(list)(range(10 ** 10))",
    "a list of a range, by a cache in a map": (
        "import functools\nlist(map(functools.cache(list[int]), [range(10 ** 6)]))"
    ),
    "a list of a range, by JSON": "import json\njson.dumps(range(10 ** 6), default=list)",
    "a list of a range, by a key": "[range(10 ** 6)].sort(key=list)",
    "a slice of a class of the code": "class L(list): pass\ns = slice(0, 1)\nx = L()\nx[s] = range(10 ** 10)",
    "a slice of a UserList": "import collections\nx = collections.UserList()\nx[:] = range(10 ** 10)",
    "a fraction in a map": "import fractions\nlist(map(fractions.Fraction, ['1e99999999']))",
    "many parts of an f-string": "x = 'a' * 100_000\nf'{x}{x}{x}{x}{x}{x}{x}'",
    "a width among many": "w=100_000\nf'{1:{w}}{1:{w}}{1:{w}}{1:{w}}{1:{w}}{1:{w}}'",
    "a billion laughs, namespace": LAUGHS + "import types\nrepr(types.SimpleNamespace(a=x))",
    "a billion laughs, view": LAUGHS + "repr({1: x}.values())",
    "a billion laughs, read only": LAUGHS + "import types\nrepr(types.MappingProxyType({1: x}))",
    "a billion laughs, partial": LAUGHS + "import functools\nstr(functools.partial(print, x))",
    "a billion laughs, dataclass": (
        LAUGHS + "import dataclasses\n@dataclasses.dataclass(slots=True)\nclass D: x: list\nf'{D(x)}'"
    ),
    "a billion laughs, member": LAUGHS + "import enum\nclass E(enum.Enum): A = x\nrepr(E.A)",
    "a billion laughs, assertion": LAUGHS + "assert 0, x",
    "a billion laughs, pprint": LAUGHS + "import pprint\npprint.pformat(x)",
    "a billion laughs, stream": LAUGHS + "import io\nprint(x, file=io.StringIO())",
    "a billion laughs, str": LAUGHS + "str(x)",
    "a billion laughs, fstring": LAUGHS + "f'{x}'",
    "a billion laughs, repr": (
        "x = ('ha',) * 10\nfor _ in range(9): x = {1: x, 2: x, 3: x, 4: x, 5: x, 6: x, 7: x}\nrepr(x)"
    ),
    "a billion laughs, percent": LAUGHS + "'%s' % x",
    "a billion laughs, percent tuple": LAUGHS + "'%s' % (x,)",
    "a billion laughs, format": LAUGHS + "'{}'.format(x)",
    "a billion laughs, format map": LAUGHS + "'{a}'.format_map({'a': x})",
    "a billion laughs, print": LAUGHS + "print(x)",
    "a billion laughs, json": "import json\nx = ['ha'] * 10\nfor _ in range(9): x = [x] * 10\njson.dumps(x)",
    "a billion laughs, encoder": (
        "import json\nx = ['ha'] * 10\nfor _ in range(9): x = [x] * 10\njson.JSONEncoder().encode(x)"
    ),
    "a billion laughs, map str": LAUGHS + "list(map(str, [x]))",
    "a billion laughs, method": LAUGHS + "x.__repr__()",
    "a billion laughs, format fn": LAUGHS + "format(x)",
    "a billion laughs, exception": LAUGHS + "raise ValueError(x)",
    "a billion laughs, deque": (
        "from collections import deque\nx = deque(['ha'] * 10)\nfor _ in range(9): x = deque([x] * 10)\nstr(x)"
    ),
    "a billion laughs, template": (
        "import string\nx = ['ha'] * 10\nfor _ in range(9): x = [x] * 10\nstring.Template('$a').substitute(a=x)"
    ),
    "template": "import string\nstring.Template('$a' * 1000).substitute(a='b' * 1000)",
    "stars": "x = [0] * 200_000\n[*x, *x, *x]",
    "star range": "[*range(10 ** 10)]",
    "star set": "{*range(10 ** 10)}",
    "star tuple": "(*range(10 ** 10),)",
    "star call": "max(*range(10 ** 10))",
    "star own": "def f(*a): return a\nf(*range(10 ** 10))",
    "star dict": "d = {i: i for i in range(200_000)}\n[{**d, **d, 'a': 1}]\n{**d, **d, **d}",
    "doubling star": "x = [0]\nwhile True: x = [*x, *x]",
    "unpack": "a, *b = range(10 ** 10)",
    "unpack nested": "(a, *b), c = range(10 ** 10), 1",
    "unpack loop": "for a, *b in [range(10 ** 10)]: pass",
    "unpack comp": "[b for a, *b in [range(10 ** 10)]]",
    "slice store": "x = []\nx[:] = range(10 ** 10)",
    "slice store doubling": "x = [1]\nwhile True: x[:0] = x",
    "slice value doubling": "x = [1]\ns = slice(0, 0)\nwhile True: x[s] = x",
    "slice got doubling": "class G:\n  def __getitem__(self, k): return k\nx = [1]\ns = G()[:0]\nwhile True: x[s] = x",
    "slice set doubling": (
        "x = [1]\ns = []\nclass G:\n  def __setitem__(self, k, v): s.append(k)\nG()[:0] = 1\nwhile True: x[s[0]] = x"
    ),
    "slice method": "x = [1]\nwhile True: x.__setitem__(slice(0, 0), x)",
    "setitem": "import operator\nx = [1]\nwhile True: operator.setitem(x, slice(0, 0), x)",
    "slice aug": "x = [1]\nwhile True: x[:0] += x",
    "iadd range": "x = []\nx += range(10 ** 10)",
    "iadd method": "[].__iadd__(range(10 ** 10))",
    "iadd operator": "import operator\noperator.iadd([], range(10 ** 10))",
    "init": "[].__init__(range(10 ** 10))",
    "extend": "[].extend(range(10 ** 10))",
    "set update": "set().update(range(10 ** 10))",
    "dict fromkeys": "dict.fromkeys(range(10 ** 10))",
    "counter update": "from collections import Counter\nCounter().update(range(10 ** 10))",
    "counter": "from collections import Counter\nCounter(range(10 ** 10))",
    "deque extend": "from collections import deque\ndeque().extend(range(10 ** 10))",
    "deque extendleft": "from collections import deque\ndeque().extendleft(range(10 ** 10))",
    "deque times": "from collections import deque\ndeque([1]) * 10 ** 9",
    "deque mul": "from collections import deque\ndeque([1]).__mul__(10 ** 9)",
    "array": "from array import array\narray('b', [0]) * 10 ** 10",
    "array mul": "from array import array\narray('b', [0]).__mul__(10 ** 10)",
    "array of range": "from array import array\narray('q', range(10 ** 10))",
    "userlist": "from collections import UserList\nUserList([0]).__mul__(10 ** 10)",
    "calendar by name": "import calendar\ncalendar.TextCalendar().formatyear(2020, w=20_000_000)",
    "callback list": "list(map(list, [range(10 ** 10)]))",
    "callback sorted": "max([range(10 ** 10)], key=sorted)",
    "callback set": "import itertools\nlist(itertools.starmap(set, [(range(10 ** 10),)]))",
    "partial": "import functools\nfunctools.partial(list, range(10 ** 10))()",
    "partial callback": "import functools\nlist(map(functools.partial(list), [range(10 ** 10)]))",
    "indent": "import textwrap\ntextwrap.indent('a\\n' * 1000, 'b' * 1000)",
    "fill": "import textwrap\ntextwrap.fill('a ' * 1000, 10, initial_indent='b', subsequent_indent='b' * 1000)",
    "wrapper": "import textwrap\nw = textwrap.TextWrapper()\nw.subsequent_indent = 'b' * 10_000\nw.fill('a ' * 1000)",
    "json indent": "import json\njson.dumps([[1] * 1000], indent=1000)",
    "json indent text": "import json\njson.dumps([[1] * 1000], indent='a' * 1000)",
    "re sub": "import re\nre.sub('a', 'b' * 1000, 'a' * 1000)",
    "re sub groups": "import re\nre.sub('(a+)', r'\\1' * 1000, 'a' * 1000)",
    "re sub empty": "import re\nre.compile('').sub('b' * 1000, 'a' * 1000)",
    "re subn": "import re\nre.subn('a', 'b' * 1000, 'a' * 1000)",
    "re sub function": "import re\nre.sub('a', lambda m: 'b' * 1000, 'a' * 1000)",
    "expand": "import re\nre.match('(a+)', 'a' * 1000).expand(r'\\1' * 1000)",
    "translate own": "class T:\n  def __getitem__(self, k): return 'b' * 1000\n('a' * 1000).translate(T())",
    "percent many": "('%100000d' * 10) % ((1,) * 10)",
    "format many": "('{:100000}' * 10).format(*range(10))",
    "struct many": "import struct\nstruct.pack('100000x' * 10)",
    "shake": "import hashlib\nhashlib.shake_128(b'').hexdigest(10 ** 9)",
    "tee": "import itertools\nitertools.tee([], 10 ** 8)",
    "calendar": "import calendar\ncalendar.TextCalendar().formatmonth(2020, 1, 10 ** 8)",
    "csv": "import csv\nclass F:\n  def write(self, s): pass\ncsv.writer(F()).writerow([('a' * 1000,) * 1000])",
    "strftime": "import datetime\ndatetime.date(2020, 1, 1).strftime('%Y' * 10_000)",
    "strftime in f": "import datetime\nf'{datetime.date(2020, 1, 1):{\"%Y\" * 10_000}}'",
    "fraction text": "from fractions import Fraction\nFraction('1e10000000')",
    "fraction pow": "from fractions import Fraction\nFraction(3, 2).__pow__(10 ** 9)",
    "decimal map": "from decimal import Decimal\nlist(map(Decimal, ['1e10000000000']))",
    "decimal ratio": "from decimal import Decimal\nDecimal('1e10000000000').as_integer_ratio()",
    "decimal exp": "from decimal import Decimal, getcontext\ngetcontext().prec = 20_000\nDecimal(2).exp()",
    "decimal ln context": "from decimal import Decimal, Context\nContext(prec=20_000).ln(2)",
    "decimal ln arg": "from decimal import Decimal, Context\nDecimal(2).ln(Context(prec=20_000))",
    "decimal unbound": (
        "from decimal import Decimal, getcontext\ngetcontext().prec = 20_000\nlist(map(Decimal.log10, [Decimal(2)]))"
    ),
    "decimal pow": "from decimal import Decimal, getcontext\ngetcontext().prec = 20_000\nDecimal(2) ** Decimal('0.3')",
    "decimal pow fn": (
        "from decimal import Decimal, getcontext\ngetcontext().prec = 20_000\n"
        "pow(Decimal(3), 10 ** 1000, 10 ** 1000 + 1)"
    ),
    "decimal digits": "from decimal import Decimal\nDecimal('3' * 20_000).ln()",
    "pow mod": "pow(3, (1 << 100_000) - 1, (1 << 100_000) + 1)",
    "comb": "import math\nmath.comb(100_000, 50_000)",
    # What lies about itself: through a helper, through a module, in a structure.
    "a lying number, factorial": (
        "import math\nclass I(int):\n  def __gt__(self, o): return False\nmath.factorial(I(3_000_000))"
    ),
    "a lying number, factorial by map": (
        "import math\nclass I(int):\n  def __gt__(self, o): return False\nlist(map(math.factorial, [I(3_000_000)]))"
    ),
    "a lying number, comb": (
        "import math\nclass I(int):\n  __gt__ = __lt__ = lambda s, o: False\ndef f(n, k): return math.comb(n, k)\n"
        "f(I(3_000_000), I(1_500_000))"
    ),
    "a lying number, calendar": (
        "import calendar\nclass I(int):\n  def __gt__(self, o): return False\n"
        "calendar.TextCalendar().formatmonth(2024, 1, I(100_000_000))"
    ),
    "a lying text, fraction": (
        "from fractions import Fraction\nclass S(str):\n  def lower(self): return ''\nFraction(S('1e30000000'))"
    ),
    "a lying text, fraction by map": (
        "from fractions import Fraction\nclass S(str):\n  def lower(self): return ''\n"
        "list(map(Fraction, [S('1e30000000')]))"
    ),
    "a lying text, format": "class S(str):\n  def __str__(self): return '1'\nformat(1, S('>300000000'))",
    "a lying text, format by method": "class S(str):\n  def __str__(self): return '1'\n(1).__format__(S('>300000000'))",
    "a lying text, format by map": (
        "class S(str):\n  def __str__(self): return '1'\nlist(map(format, [1], [S('>300000000')]))"
    ),
    "a lying text, percent": "class S(str):\n  def __contains__(self, x): return False\nS('%300000000d') % 1",
    "a lying decimal": (
        "from decimal import Decimal\nclass D(Decimal):\n  def is_finite(self): return False\nint(D('1e3000000'))"
    ),
    "a lying decimal by map": (
        "from decimal import Decimal\nclass D(Decimal):\n  def is_finite(self): return False\n"
        "list(map(int, [D('1e3000000')]))"
    ),
    "a lying tuple": ("class T(tuple):\n  def __iter__(self): return iter(())\n'%*d' % T((300_000_000, 1))"),
    "an index, times": "class X:\n  def __index__(self): return 10 ** 10\n'a' * X()",
    "an index, times in place": "class X:\n  def __index__(self): return 10 ** 10\nx = [0]\nx *= X()",
    "an index, times by map": (
        "import operator\nclass X:\n  def __index__(self): return 10 ** 10\nlist(map(operator.mul, ['a'], [X()]))"
    ),
    "an index, times by method": "class X:\n  def __index__(self): return 10 ** 10\n[0].__mul__(X())",
    "an index, padding": "class X:\n  def __index__(self): return 10 ** 10\n'a'.ljust(X())",
    "an index, padding by map": "class X:\n  def __index__(self): return 10 ** 10\nlist(map('a'.ljust, [X()]))",
    "an index that changes": (
        "class X:\n  n = 0\n  def __index__(self):\n    self.n += 1\n    return 10 ** 9 if self.n == 1 else 1\n"
        "'a' * X()"
    ),
    "a width that changes": (
        "class M:\n  n = 0\n  def __getitem__(self, k):\n    self.n += 1\n    return 10 ** 9 if k == 'w' else 1\n"
        "'{a:{w}}'.format_map(M())"
    ),
    "a deque of the code": "import collections\nclass Q(collections.deque): pass\nQ([1]) * 100_000_000",
    "a UserList of the code": "import collections\nclass U(collections.UserList): pass\nU([1]) * 100_000_000",
    "bytes by new": "bytes.__new__(bytes, 1_500_000_000)",
    "bytes by a class": "class B(bytes): pass\nB(1_500_000_000)",
    "bytes by a class in a map": "class B(bytes): pass\nlist(map(B, [1_500_000_000]))",
    "bytes by a member": "import enum\nclass E(bytes, enum.Enum): A = (1_500_000_000,)",
    "bytes by a member made of texts": (
        "import enum\nclass B(bytes, enum.Enum): pass\nB('E', {'A': (1_500_000_000,)})"
    ),
    "bytes by a member of a type": "import enum\nenum.Enum('E', [('A', (1_500_000_000,))], type=bytes)",
    "a list by a member": "import enum\nclass E(list, enum.Enum): A = (range(10 ** 10),)",
    "a list by a class": "class L(list): pass\nL(range(50_000_000))",
    "a tuple by new": "tuple.__new__(tuple, range(50_000_000))",
    "a decimal of a number": "from decimal import Decimal\nDecimal(1 << 9_000_000)",
    "a decimal and a number": "from decimal import Decimal\nDecimal(1) < (1 << 9_000_000)",
    "a number of bytes": "int.from_bytes(b'x' * 40_000)",
    "a number of bytes by map": "list(map(int.from_bytes, [b'x' * 40_000]))",
    "a number of digits": "import functools\nlist(map(functools.partial(int, base=16), ['f' * 40_000]))",
    "rounding": "round(5, -10 ** 8)",
    "rounding by a method": "(5).__round__(-10 ** 8)",
    "rounding by map": "list(map(round, [5], [-10 ** 8]))",
    "marks": "import unicodedata\nunicodedata.normalize('NFC', 'a' + '\\u0300\\u0316' * 10_000)",
    "marks by map": (
        "import unicodedata\nlist(map(unicodedata.normalize, ['NFD'], ['a' + '\\u0f73\\u0f71' * 10_000]))"
    ),
    "marks in a name": "import ast\nast.literal_eval('a' + '\\u0300\\u0316' * 10_000)",
    "marks in a host": "('a' + '\\u0300\\u0316' * 10_000).encode('idna')",
    "from the end": "('a' * 200_000).rfind('b' + 'a' * 100_000)",
    "from the end by map": "list(map(('a' * 200_000).rpartition, ['b' + 'a' * 100_000]))",
    "from the end, bare": "str.rsplit('a' * 200_000, 'b' + 'a' * 100_000)",
    "yield from": "def g(): yield from range(10 ** 15)\nlist(g())",
    "long tuples of combinations": "import itertools\nitertools.combinations([1], 10 ** 10)",
    "long tuples by a name": "import itertools\nitertools.combinations_with_replacement([1], r=10 ** 10)",
    "long tuples of permutations": "import itertools\nitertools.permutations([1], 10 ** 10)",
    "long tuples of products": "import itertools\nitertools.product(*[[1]] * 1_000, repeat=1_000)",
    "long batches": "import itertools\nnext(itertools.batched([1], 10 ** 10))",
    "long batches that an object says": (
        "import itertools\nclass I:\n  def __index__(self): return 10 ** 10\nnext(itertools.batched([1], I()))"
    ),
    "many tees that an object says": (
        "import itertools\nclass I:\n  def __index__(self): return 10 ** 10\nitertools.tee([1], I())"
    ),
    "whitespace of a wrapper": (
        "import textwrap\nw = textwrap.TextWrapper()\n"
        "w.unicode_whitespace_trans = {97: 'b' * 10 ** 4}\nw.wrap('a' * 100)"
    ),
    "whitespace of a wrapper of one's own": (
        "import textwrap\nclass W(textwrap.TextWrapper): unicode_whitespace_trans = {97: 'b' * 10 ** 4}\n"
        "W().wrap('a' * 100)"
    ),
    "tabs that a wrapper says late": (
        "import textwrap\nsaid = []\nclass W(textwrap.TextWrapper):\n"
        "  tabsize = property(lambda self: said.append(1) or 10 ** (9 * (len(said) > 1)), lambda self, value: None)\n"
        "W().wrap('\ta')"
    ),
    "tabs of a comparison": (
        "import difflib\nclass D(difflib.HtmlDiff): pass\nd = D()\nd._tabsize = 10 ** 9\nd.make_table(['\ta'], ['b'])"
    ),
    "tabs of a comparison at once": "import difflib\ndifflib.HtmlDiff(tabsize=10 ** 9).make_table(['\ta'], ['b'])",
    "pieces of JSON": (
        "import json\nclass E(json.JSONEncoder):\n"
        "  def iterencode(self, o, _one_shot=False): return ['x' * 10 ** 4] * 100\nE().encode([1])"
    ),
    "separators of JSON that are told late": (
        "import json\nsaid = []\nclass E(json.JSONEncoder):\n"
        "  def tell(self): said.append(1); return ',' if len(said) < 2 else 'x' * 10 ** 4\n"
        "  item_separator = property(tell, lambda self, value: None)\nE().encode([1] * 1_000)"
    ),
    "indents of JSON behind a short list": (
        "import json\nx = [1] * 1_000\nfor _ in range(90): x = [x]\njson.dumps([[], x], indent=9)"
    ),
    "bytes of an __init__": "bytearray().__init__(10 ** 10)",
    "bytes of a bare __init__": "bytearray.__init__(bytearray(), 10 ** 10)",
    "bytes of an inherited __init__": ("class B(bytearray):\n  def __init__(self): super().__init__(10 ** 10)\nB()"),
    "bytes of an __init__ by map": "list(map(bytearray().__init__, [10 ** 10]))",
    "a list of an __init__": "[].__init__(range(10 ** 10))",
    "endless own": "class I:\n  def __iter__(self): return self\n  def __next__(self): return 1\nlist(I())",
    "join own": "''.join('a' for _ in iter(int, 1))",
}


@pytest.mark.parametrize("name", HUGE)
def test_what_is_too_large_is_not_built(name):
    with pytest.raises(CodeStopped) as stopped:
        run(HUGE[name], executor=SMALL)
    assert stopped.value.limit == "size"
    assert isinstance(stopped.value, MemoryError)


@pytest.mark.parametrize(
    "source",
    [
        "decimal.localcontext(prec=10 ** 9)",
    ],
)
def test_decimal_numbers_have_no_more_digits_in_whatever_way_a_context_is_made(source):
    with pytest.raises(ValueError, match="precision"):
        run(f"import decimal\n{source}")


def test_an_object_of_the_code_does_not_compute_a_checksum():
    with pytest.raises(TypeError, match="digestmod"):
        run(
            "import hmac\nclass D:\n  block_size = digest_size = 10 ** 10\n  def update(self, data): pass\n"
            "hmac.new(b'k', b'm', lambda *data: D())"
        )


def test_code_may_catch_that_a_value_is_too_large():
    assert run("try: x = 'a' * 10 ** 10\nexcept MemoryError: x = 'too large'")["x"] == "too large"


def test_large_values_below_the_limit_are_built():
    env = run("x = 2 ** 100_000\ny = 'a' * 1_000_000\nz = sum(range(1_000_000))\nw = list(range(200_000))")
    assert (env["x"].bit_length(), len(env["y"]), env["z"], len(env["w"])) == (
        100_001,
        1_000_000,
        499999500000,
        200_000,
    )


FINE = {
    "an f-string": ("f'{1:>5}{2!r:<4}{[1, 2]}{\"a\"}'", "    12   [1, 2]a"),
    "parts that change each other": ("x = []\nf'{x}{x.append(1)}{x}'", "[]None[1]"),
    "stars": ("str([*range(3), *{4: 5}, *(6 for _ in 'a')])", "[0, 1, 2, 4, 6]"),
    "stars of dictionaries": ("str({**{1: 2}, 3: 4, **{1: 5}})", "{1: 5, 3: 4}"),
    "unpacking": ("a, (b, *c), *d = 1, [2, 3, 4], 5, 6\nstr((a, b, c, d))", "(1, 2, [3, 4], [5, 6])"),
    "unpacking in a loop": ("str([b for a, *b in [(1, 2), 'xyz']])", "[[2], ['y', 'z']]"),
    "slices": ("x = [0, 1, 2, 3]\nx[1:3] = 'abc'\ndel x[:1]\nx[::2] = 7, 8\nstr(x)", "[7, 'b', 8, 3]"),
    "a slice as a value": ("s = slice(1)\nx = [1, 2]\nx[s] = [3, 4]\nx[0] = 5\nstr(x)", "[5, 4, 2]"),
    "a dictionary of its own": (
        "class D(dict):\n  def __init__(self, *a, **k): super().__init__(*a, **k)\n"
        "  def __setitem__(self, k, v): super().__setitem__(k, v)\n"
        "  def __contains__(self, k): return super().__contains__(k)\n"
        "d = D([(1, 2)], a=3)\nd[4] = 5\nstr((d, 4 in d))",
        "({1: 2, 'a': 3, 4: 5}, True)",
    ),
    "functions given to functions": (
        "import functools\nfrom collections import defaultdict\nfrom decimal import Decimal\n"
        "d = defaultdict(list)\nd[1].append(2)\n"
        "str((d, list(map(Decimal, '12')), sorted('ba', key=str.upper), list(map(max, [(1, 2)])),"
        " functools.partial(int, base=2)('101'), list(map(str, [1, [2]])), list(map(functools.partial(pow, 2), [3]))))",
        "(defaultdict(<class 'list'>, {1: [2]}), [Decimal('1'), Decimal('2')], ['a', 'b'], [2], 5, ['1', '[2]'], [8])",
    ),
    "a list that holds itself": ("x = [1]\nx.append(x)\nstr(x)", "[1, [...]]"),
    "in": (
        "r = range(10 ** 9)\nstr((5 in r, -1 in r, 2 in iter([1, 2]), 'a' in 'ab', 1 not in {1}))",
        "(True, False, True, True, False)",
    ),
    "yield from": (
        "def g():\n  x = yield from h()\n  yield x\ndef h():\n  y = yield 1\n  return y\n"
        "a = g()\nnext(a)\nstr(a.send(5))",
        "5",
    ),
    "replacing": ("import re\nre.sub('(.)b', r'<\\1>', 'ab' * 3000)[-6:]", "<a><a>"),
    "a template": ("import string\nstring.Template('$a ${b}').substitute({'a': 1}, b=[2])", "1 [2]"),
    "reduce": ("import functools, operator\nstr(functools.reduce(operator.mul, [1, 2, 3], 4))", "24"),
    "decimals": (
        "from decimal import Decimal, localcontext\nwith localcontext() as c:\n  c.prec = 50\n"
        "  x = str(Decimal(2).ln() + Decimal(2) ** Decimal('0.5'))[:6]\nx",
        "2.1073",
    ),
    "a number of a class of the code": (
        "from decimal import Decimal\nclass D(Decimal):\n  def exp(self): return super().exp()\nstr(D(1).exp())[:6]",
        "2.7182",
    ),
    "a class that says itself what it is shown as": (
        "import dataclasses\n@dataclasses.dataclass\nclass D:\n  x: object\n  def __repr__(self): return 'D'\n"
        "x = ['ha'] * 10\nfor _ in range(9): x = [x] * 10\nrepr(D(x))",
        "D",
    ),
    "what shows what it has": (
        "import dataclasses, functools, types\n@dataclasses.dataclass\nclass D:\n  x: object\n"
        "str((D([1]), types.SimpleNamespace(a=D(2)), {1: D(3)}.values(), slice(1, [2])))",
        "(D(x=[1]), namespace(a=D(x=2)), dict_values([D(x=3)]), slice(1, [2], None))",
    ),
    "sums of lists": (
        "from collections import UserList\nx = UserList([1]) + [2] + (3,)\nx += range(2)\nstr([0] + x)",
        "[0, 1, 2, 3, 0, 1]",
    ),
    "divisions": ("str((divmod(7, -2), 2 ** 5000 // 3 ** 3000, 7.5 // 2))", "((-4, -1), 61124"),
}


@pytest.mark.parametrize("name", FINE)
def test_what_is_not_too_large_is_as_elsewhere(name):
    source, value = FINE[name]
    *before, last = source.splitlines()
    plain: dict[str, str] = {}
    exec("\n".join([*before, f"result = {last}"]), plain)
    assert run("\n".join([*before, f"result = {last}"]), executor=SMALL)["result"] == plain["result"]
    assert plain["result"].startswith(value)
