"""What a checker has only supposed, in data without annotations and in a session, is looked at a second time."""

from __future__ import annotations

import pytest

from effectful_agents import NotHandled, Skill
from effectful_agents.encoding.splicing import splice_skill_body, splice_snippet
from effectful_agents.handlers.validation.second_look import loosened
from tests.handlers.validation.checking import checkers, report, scope

ROWS = [{"name": "tea", "price": 2.5}, {"name": "salt", "price": 1, "tags": ["white"]}]
TABLE = [["tea", 2.5], ["salt", 1]]
SETTINGS = {"deep": {"n": 1, "of": "x"}, "limit": 3}
CACHE = None
FOUND: dict[str, float] = {"tea": 2.5}
LOOSE = [
    "sum(row['price'] for row in ROWS)",
    "max(ROWS, key=lambda row: row['price'])['name'].upper()",
    "ROWS[1]['tags'][0]",
    "round(sum(row[1] for row in TABLE), 2)",
    "SETTINGS['deep']['n'] + SETTINGS['limit']",
    "', '.join(row['name'] for row in ROWS)",
]


@Skill.define
def pick(n: int) -> int:
    """Pick {n}."""
    raise NotHandled


PICK = scope(pick, 1)


@checkers
@pytest.mark.parametrize(
    "snippet",
    [
        *LOOSE,
        "mine = [{'name': 'tea', 'price': 2.5}]\nsum(row['price'] for row in mine)",
        "CACHE['x']",
        "import re\nre.search('a', 'a').group() + re.search('a', 'a')[0]",
        "FOUND.get('tea') * 2",
        "next((row for row in ROWS if row['price'] > 1), None)['price']",
        "best = None\nfor r in ROWS:\n    if best is None or r['price'] > best['price']:\n        best = r\nbest['x']",
        "def f(rows: list = None) -> int:\n    return len(rows or [])\nf()",
        "counts = {'a': 1, 'b': 2}\nmax(counts, key=counts.get)\nsorted(counts, key=counts.get, reverse=True)",
        "from collections import Counter, defaultdict\nc = Counter('aab')\nmax(c, key=c.get)\n"
        "d = defaultdict(float)\nmin(d, key=d.get)\nsum(map(d.get, d))",
        "amounts = [FOUND.get(key) for key in FOUND]\nsum(amounts)",
        "value = FOUND.get('tea')\nvalue += 1",
        "try:\n    late = undefined\nexcept NameError:\n    late = 0",
        "def two(a, b):\n    return a\ntry:\n    two(1)\nexcept (ValueError, TypeError) as error:\n    print(error)",
        "try:\n    (1).nothing\nexcept AttributeError:\n    pass",
        "board = [[0] * 3 for _ in range(3)]\nboard[0][0] = 'x'",
        "class A:\n    def __init__(self):\n        self.next = None\n    def to(self):\n        return self.next[0]",
    ],
)
def test_in_a_session_what_is_only_supposed_is_left_to_the_run(installed, snippet):
    assert report(installed, splice_snippet(snippet, pick, PICK), lenient=True) == ""


@checkers
@pytest.mark.parametrize(
    "snippet", ["ROWS.nothing", "ROWS[0].nothing", "FOUND.get('tea') + undefined", "len(n)", "[1, 'a'].nothing"]
)
def test_and_what_is_certain_is_told(installed, snippet):
    assert "line 1: " in report(installed, splice_snippet(snippet, pick, PICK), lenient=True)


@checkers
@pytest.mark.parametrize(
    "snippet",
    [
        "max({'a': 1}, kex=len)",
        "try:\n    undefined\nexcept TypeError:\n    pass",
        "try:\n    int('a')\nexcept NameError:\n    undefined",
        "try:\n    undefined\nfinally:\n    pass",
        "try:\n    'a' + 1\nexcept Exception:\n    pass",
        "value = 'a'\nvalue += 1",
    ],
)
def test_what_a_piece_does_not_expect_to_fail_is_told(installed, snippet):
    assert "line " in report(installed, splice_snippet(snippet, pick, PICK), lenient=True)


@checkers
def test_in_a_body_data_of_the_program_is_anything_and_its_own_is_not(installed):
    body = "def f(n):\n    {}\n    return n"
    for good in LOOSE:
        assert report(installed, splice_skill_body(body.format(good), pick, PICK)) == "", good
    for bad in ("print(FOUND.get('tea') * 2)", "x: dict[str, int] = {'a': 1, 'b': 'x'}", "print(ROWS.nothing)"):
        assert "line 2: " in report(installed, splice_skill_body(body.format(bad), pick, PICK)), bad


@checkers
def test_rows_that_are_in_no_source_are_anything(installed):
    env = {**PICK, "read": [{"name": "tea", "price": 2.5}, {"name": "salt", "price": 1}]}
    snippet = "total = sum(row['price'] for row in read)\nread[0]['name'].upper()\nread = total"
    assert report(installed, splice_snippet(snippet, pick, env), lenient=True) == ""


def test_a_module_keeps_its_lines_and_one_without_suppositions_is_not_made():
    source = "ROWS = [\n    {'é': 1, 'b': (2.5), **more},\n    {'c': x.y, 'd': [1, 'a']},\n]\nprint(\n  ROWS[0])\n"
    made = loosened(source, 5, 6, lenient=True)
    assert made is not None
    lines = made.split("\n")
    assert lines[1] == "    {'é': __anything__(1), 'b': (__anything__(2.5)), **more},"
    assert lines[2] == "    {'c': __anything__(x.y), 'd': __anything__([__anything__(1), __anything__('a')])},"
    assert lines[5] == "  __there__(__there__(ROWS)[0]))"
    assert loosened("x = {'a': 1}\nprint(x)\n", 2, 2, lenient=False) is None
    assert loosened("x = (\n", 1, 1, lenient=True) is None
