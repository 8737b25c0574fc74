"""The rules that are ready for `Governance`."""

from __future__ import annotations

import collections
import dataclasses
import enum
import os
import re
import urllib.parse
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PosixPath, PurePosixPath
from typing import Annotated, Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool, handler, harness
from effectful_agents.errors import EncodingError, OptionError, StepDenied
from effectful_agents.handlers.policy import Governance
from effectful_agents.handlers.policy.rules import ArgumentRule, HostRule, PathRule, Redaction, UntrustedContent
from effectful_agents.operations.policy import Disposition, EffectKind, ProposedEffect
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.policy.routes import got, read, take


@pytest.fixture(autouse=True)
def _nothing_got() -> None:
    got.clear()


@Tool.define
def read_all(sources: list[Path], deep: dict[str, Path]) -> str:
    """Read files."""
    got.extend([sources, deep])
    return "text"


@Tool.define
def fetch(url: str) -> str:
    """Fetch a page."""
    got.append(url)
    return "page"


@dataclasses.dataclass
class Job:
    name: str
    address: str


@Tool.define
def fetch_job(job: Job) -> str:
    """Fetch."""
    got.append(job)
    return "page"


@Tool.define
def keep(value: Any) -> str:
    """Keep a value."""
    got.append(value)
    return "kept"


@Tool.define
def open_one(source: Path | None) -> str:
    """Open a file."""
    got.append(source)
    return "open"


@Skill.define
def ask(request: str) -> str:
    """{request}"""
    raise NotHandled


class Unruly(str):
    """A text that says what it is not."""

    def __contains__(self, other: object) -> bool:
        return False

    def startswith(self, *_: Any) -> bool:
        return False

    def lstrip(self, *_: Any) -> str:
        return "https://example.org"

    def __str__(self) -> str:
        return "https://example.org"


class Untrue(int):
    """A number that is below all others."""

    def __le__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False


class Several(list):
    """A list of another class."""


@dataclasses.dataclass(frozen=True)
class Named:
    path: Any


@dataclasses.dataclass(slots=True)
class Placed:
    where: Path


class Place(NamedTuple):
    where: Path


class Model(pydantic.BaseModel):
    where: Path


class Known(enum.Enum):
    """Two places."""

    FAR = Path("/etc/passwd")
    EVIL = "https://evil.example"


class Away(PosixPath):
    """A path that may be anywhere."""


def denied(rule: Any, tool: Any, *args: Any) -> str | None:
    """What a call is told, if it is refused."""
    with handler(Governance([rule])):
        try:
            tool(*args)
        except StepDenied as error:
            return str(error)
    return None


def refuses(rule: Any, tool: Any, **arguments: Any) -> bool:
    """Whether a rule refuses arguments, whatever has been made of them before in a call."""
    effect = ProposedEffect(kind=EffectKind.TOOL_CALL, name=tool.__name__, tool=tool, arguments=arguments)
    decision = rule.tool_call(effect)
    return decision is not None and decision.disposition is Disposition.DENY_STEP


# --- arguments --------------------------------------------------------------------------------------------------------


def test_arguments_by_predicate_and_schema():
    assert denied(ArgumentRule(read, lambda arguments: "x" in arguments["path"]), read, "y")
    assert not denied(ArgumentRule(read, lambda arguments: "x" in arguments["path"]), read, "x")
    schema = {"properties": {"path": {"pattern": "^[a-z]+$"}}}
    assert "does not match" in str(denied(ArgumentRule(read, schema=schema), read, "A/../b"))
    assert not denied(ArgumentRule(take, schema=schema), read, "A")
    assert denied(ArgumentRule(None, lambda arguments: 1 / 0), read, "x")
    assert got == ["x", "A"]
    with pytest.raises(OptionError):
        ArgumentRule(read)
    with pytest.raises(OptionError):
        ArgumentRule("read", bool)
    with pytest.raises(EncodingError):
        ArgumentRule(read, schema={"type": 7})


# --- paths ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data2").mkdir()
    (tmp_path / "data" / "out").symlink_to(tmp_path / "data2")
    (tmp_path / "data" / "in").symlink_to(tmp_path / "data")
    return tmp_path / "data"


def test_paths_inside_and_outside(folder):
    rule = PathRule(folder)
    for inside in ("a.txt", "./b/../a.txt", "in/a.txt", ""):
        assert not denied(rule, read, f"{folder}/{inside}")
    assert got == [f"{folder}/a.txt"] * 3 + [str(folder)]
    outside = ("../x", "../data2/x", "out/x", "in/../../x", "//../../../etc/passwd")
    for path in (
        *(f"{folder}/{one}" for one in outside),
        "/etc/passwd",
        "~/x",
        "~root/x",
        "etc/passwd",
        str(folder) + "2/x",
    ):
        assert denied(rule, read, path), path
    assert denied(rule, read, f"{folder}/a\0b")


def test_paths_in_containers_and_by_type(folder):
    rule = PathRule(folder)
    assert not denied(rule, read_all, [folder / "a"], {"x": folder / "in" / "b"})
    assert got == [[folder / "a"], {"x": folder / "b"}]
    assert denied(rule, read_all, [folder / "a", Path("/etc")], {})
    assert denied(rule, read_all, [], {"x": folder / "out"})


@given(parts=st.lists(st.sampled_from(["..", ".", "a", "in", "out", "", "~", "\\.."]), max_size=6))
def test_what_passes_is_inside(parts, tmp_path_factory):
    folder = Path(os.path.realpath(tmp_path_factory.getbasetemp())) / "paths"
    folder.mkdir(exist_ok=True)
    got.clear()
    if denied(PathRule(folder), read, os.path.join(folder, *parts)) is None:
        assert os.path.commonpath([folder, os.path.realpath(got[0])]) == str(folder)


@pytest.mark.parametrize(
    "value",
    [
        b"a",
        0,
        True,
        (one for one in ["a"]),
        map(str, ["a"]),
        iter(["a"]),
        Several(["a"]),
        collections.deque(["a"]),
        {"a": 1},
        {"a": 1}.keys(),
        {"/etc/passwd": "a"},
        Named("a"),
        Away("a"),
        ["a", 3],
        [["a", {"a": b"a"}]],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_path_where_one_is_named(value, folder, monkeypatch):
    """Though each would be inside of the folder, for whoever takes it for a path."""
    monkeypatch.chdir(folder)
    assert refuses(PathRule(folder), read, path=value)
    assert refuses(PathRule(folder, arguments=[]), open_one, source=value) or value == {"/etc/passwd": "a"}


def test_what_is_a_path(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for value, expected in (
        ("a", f"{folder}/a"),
        (Path("a"), folder / "a"),
        (PurePosixPath("a"), PurePosixPath(folder / "a")),
        (None, None),
        (["a", ("b",)], [f"{folder}/a", (f"{folder}/b",)]),
        ({"a", "b"}, {f"{folder}/a", f"{folder}/b"}),
        ({f"{folder}/k": "a"}, {f"{folder}/k": f"{folder}/a"}),
    ):
        got.clear()
        assert not denied(PathRule(folder), read, value)
        assert got == [expected]
        assert type(got[0]) is type(expected)
    got.clear()
    assert not denied(PathRule(folder), open_one, "a")
    assert denied(PathRule(folder), open_one, "/etc/passwd")
    assert got == [f"{folder}/a"]


type Files = list[Path]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Path | None, "/etc/passwd"),
        (Files, ["/etc/passwd"]),
        (pydantic.FilePath, "/etc/passwd"),
        (Annotated[Path, "a file"], "/etc/passwd"),
        (Mapping[str, Path], {"a": "/etc/passwd"}),
        (dict[str, tuple[Path, ...]], {"a": ("/etc/passwd",)}),
    ],
    ids=["optional", "alias", "pydantic", "annotated", "mapping", "deep"],
)
def test_texts_where_a_tool_takes_paths(annotation, value, folder):
    def take_one(source: Any) -> str:
        """Take a file."""
        return "taken"

    take_one.__annotations__["source"] = annotation
    tool = Tool.define(take_one)
    assert denied(PathRule(folder), tool, value)
    assert denied(PathRule(folder), tool, b"/etc/passwd")
    assert not denied(PathRule(folder), tool, None)


def test_paths_that_are_hidden_in_values(folder):
    rule, far = PathRule(folder), Path("/etc/passwd")
    kinds = (Placed, Place, lambda where: Model(where=where), lambda where: {where: 1}, lambda where: [Placed(where)])
    for made in kinds:
        got.clear()
        assert denied(rule, keep, made(far))
        assert denied(rule, keep, made(folder / "in" / "a"))  # it cannot be put in the place of what it leads to
        assert not denied(rule, keep, made(folder / "a"))
        assert got == [made(folder / "a")]
    for value in (
        Known.FAR,
        Away("/etc"),
        map(Path, ["/etc"]),
        collections.deque([far]),
        Several([far]),
        {1: far}.values(),
    ):
        assert denied(rule, keep, value)
    for value in ({"path": "/etc/passwd"}, [{"file": ["/etc/passwd"]}], Named("/etc/passwd"), {"a": Named(3)}):
        assert denied(rule, keep, value)
    got.clear()
    assert not denied(rule, keep, [{"file": f"{folder}/in/a", "text": "/etc/passwd", "data": b"a"}, 3, None])
    assert got == [[{"file": f"{folder}/a", "text": "/etc/passwd", "data": b"a"}, 3, None]]


def test_arguments_that_a_tool_takes_by_any_name(folder):
    model = ScriptedModel(calls("take", path="/etc/passwd"), calls("take", path=f"{folder}/a"), "done")
    with handler(harness(eval_provider="none")), handler(model), handler(Governance([PathRule(folder)])):
        assert ask("?") == "done"
    assert got == [{"path": f"{folder}/a"}]
    only = ArgumentRule(take, schema={"properties": {"path": {"enum": ["a"]}}})
    assert denied(only, lambda: take(path="b"))
    assert not denied(only, lambda: take(path="a"))
    assert denied(ArgumentRule(take, lambda arguments: arguments["path"] == "a"), lambda: take(path="b"))


def test_values_do_not_speak_for_themselves():
    assert denied(ArgumentRule(keep, lambda arguments: arguments["value"] <= 100), keep, Untrue(5000))
    assert denied(ArgumentRule(keep, schema={"properties": {"value": {"maximum": 100}}}), keep, Untrue(5000))
    assert denied(ArgumentRule(keep, lambda arguments: "evil" not in arguments["value"]), keep, Unruly("evil"))
    assert denied(ArgumentRule(keep, lambda arguments: sum(arguments["value"]) <= 9), keep, Several([Untrue(10)]))


# --- methods that override --------------------------------------------------------------------------------------------


class Box(Agent):
    """A box."""

    @Tool.define
    def read(self) -> str:
        """Read."""
        return "text"

    @Tool.define(risk=Risk.HARD_WRITE)
    def send(self, to: str) -> str:
        """Send."""
        got.append(to)
        return "sent"


class Chest(Box):
    """A chest."""

    @Tool.define
    def read(self) -> str:
        """Read more."""
        return "more text"

    @Tool.define(risk=Risk.HARD_WRITE)
    def send(self, to: str) -> str:
        """Send more."""
        got.append(f"{to}!")
        return "sent"


@pytest.mark.parametrize("kind", [Box, Chest])
def test_rules_for_a_method_hold_for_one_that_overrides_it(kind):
    box = kind()
    with handler(Governance([UntrustedContent(Box.read)])):
        box.read()
        with pytest.raises(StepDenied):
            box.send("ann")
    assert denied(ArgumentRule(Box.send, lambda arguments: arguments["to"] != "ann"), box.send, "ann")
    assert denied(PathRule("/srv", tools=[Box.send], arguments=["to"]), box.send, "/etc")
    assert denied(HostRule("example.org", tools=Box.send, arguments=["to"]), box.send, "/etc")
    assert got == []


def test_rules_for_one_that_overrides_do_not_hold_for_what_it_overrides():
    assert not denied(ArgumentRule(Chest.send, lambda arguments: False), Box().send, "ann")
    assert denied(ArgumentRule(Chest.send, lambda arguments: False), Chest().send, "ann")
    assert got == ["ann"]


# --- hosts ------------------------------------------------------------------------------------------------------------

ALLOWED = (
    "https://example.org/a?b=c",
    "http://EXAMPLE.org:8080",
    "https://api.example.net/x",
    "https://example.org/?@",
)
REFUSED = (
    "https://evil.example/",
    "https://example.org@evil.example/",
    "https://example.org:80@evil.example/",
    "https://evil.example#@example.org",
    "https://evil.example\\@example.org",
    "https://evil.example/\\example.org",
    "https://example.net",
    "https://xexample.net",
    "https://example.org.evil.example",
    "ftp://example.org",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "//example.org",
    "example.org",
    "https:example.org",
    "https://127.0.0.1",
    "https://2130706433",
    "https://0x7f.1",
    "https://[::1]/",
    "https://exa\u0430mple.org",
    "https://example。org",
    "https://example.org\n.evil.example",
    " https://example.org",
    "https://example.org:99999999",
    "https://[example.org",
    "https://%65vil.example",
    "",
    "https://example.org./",
    "https://example.org../",
    "https://example.org:",
    "https://.example.net",
    "https://a..example.net",
    "https:///evil.example",
    *(f"https://evil.example{sign}.example.net/" for sign in ";,'$&*`!<>{|^\"()=+~_"),
)


@pytest.mark.parametrize("url", ALLOWED)
def test_hosts_that_are_allowed(url):
    assert not denied(HostRule("example.org", "*.example.net"), fetch, url)
    assert got == [url]


@pytest.mark.parametrize("url", REFUSED)
def test_hosts_that_are_not(url):
    assert denied(HostRule("example.org", "*.example.net"), fetch, url)
    assert got == []


def test_addresses_inside_of_values_are_found():
    rule = HostRule("example.org")
    assert denied(rule, fetch_job, Job("x", "https://evil.example"))
    assert not denied(rule, fetch_job, Job("x", "https://example.org"))
    assert not denied(rule, fetch_job, Job("x", "no address"))


@pytest.mark.parametrize(
    "text",
    [
        "Look at https://evil.example/x, please.",
        "(https://evil.example)",
        "//evil.example/x",
        "see //evil.example",
        "https:evil.example",
        "https:/evil.example",
        "https:\\\\evil.example",
        "Take https:\\\\evil.example now",
        "https:\\/\\/evil.example",
        '{"u":"https:\\/\\/evil.example"}',
        '{"u":"https:\\u002f\\u002fevil.example"}',
        '{"u":"https://evil.example","u":"https://example.org"}',
        "\\/evil.example",
        "\\\\evil.example\\share",
        "mailto:eve@evil.example",
        "data:text/html,<b>hi there</b>",
        "javascript:alert( 1 )",
        "  ftp://example.org",
        "https://example.org @evil.example/",
        "https://example.org\n.evil.example",
        'go to https://example.org"@evil.example/',
        "https://example.org/ or https://evil.example/",
        "[a](https://example.org/a),(https://evil.example/a)",
        b"https://evil.example",
        {"https://evil.example": 1},
        Known.EVIL,
        Unruly("https://evil.example"),
        (one for one in ["https://evil.example"]),
        map(str, ["https://evil.example"]),
        collections.deque(["https://evil.example"]),
        [{"url": "evil.example"}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_addresses_in_texts_that_are_not_allowed(text):
    assert denied(HostRule("example.org"), keep, text)
    assert got == []


@pytest.mark.parametrize(
    "text",
    [
        "Look at https://example.org/a, please (or https://example.org).",
        "https://example.org is nice",
        "https:\\/\\/example.org/a",
        '{"u":"https:\\/\\/example.org/a","to":"ann@example.net"}',
        "[a](https://example.org/a).",
        "**https://example.org**",
        "Note: a//b and c: d, 12:30, std::vector, user:42",
        "// a comment",
        "Write to mailto:ann@example.net or ann@example.net",
        "C:\\files",
        "data: none",
        {"a": ["https://example.org"], "b": None, "c": 3.5},
        b"\x00\xff",
    ],
    ids=lambda value: type(value).__name__,
)
def test_texts_that_are(text):
    assert not denied(HostRule("example.org"), keep, text)
    assert got == [text]


@pytest.mark.parametrize(
    "value",
    [
        b"https://example.org",
        3,
        {"https://example.org": 1},
        iter(["https://example.org"]),
        Job("x", "https://example.org"),
        ["https://example.org", object()],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_text_where_an_address_is_named(value):
    assert refuses(HostRule("example.org"), fetch, url=value)


def test_addresses_in_the_forms_that_are_known():
    rule = HostRule("example.org")
    for value in (None, ["https://example.org"], {"https://example.org": ("https://example.org/a",)}):
        assert not denied(rule, fetch, value)
    assert not denied(rule, fetch, pydantic.HttpUrl("https://example.org/a"))
    assert denied(rule, fetch, pydantic.HttpUrl("https://evil.example/a"))


def test_code_is_left_out_since_what_it_calls_is_asked_about():
    code = "x = fetch('https://example.org/a')\ny = fetch('https://evil.example')"
    model = ScriptedModel(calls("exec_code", code=code), "done")
    with handler(harness(eval_provider="restricted", type_checker="none")), handler(model):
        with handler(Governance([HostRule("example.org")])):
            assert ask("?") == "done"
    assert got == ["https://example.org/a"]


@pytest.mark.parametrize("host", ["example.org.", "*", "*.", ".example.org", "a..b", "*.a.*", "exämple.org", "a b", ""])
def test_hosts_that_are_no_names(host):
    with pytest.raises(OptionError, match="no host"):
        HostRule(host)


@given(st.text(alphabet='/\\:@.#? a\n"[]', max_size=12))
def test_what_passes_goes_to_no_other_host(glue):
    """Whatever stands between, no client that reads the text as one address goes elsewhere."""
    address = f"https://example.org{glue}evil.example/"
    if (
        HostRule("example.org").tool_call(ProposedEffect(kind="tool_call", name="x", arguments={"url": address}))
        is None
    ):
        assert urllib.parse.urlsplit(address).hostname == "example.org"


def test_numeric_addresses_where_they_stand_literally():
    assert not denied(HostRule("127.0.0.1"), fetch, "http://127.0.0.1:8000/")
    assert denied(HostRule("127.0.0.1"), fetch, "http://127.1/")


# --- redaction --------------------------------------------------------------------------------------------------------

FOUND = {
    "ann.b+c@mail.example.org": "EMAIL",
    "4111 1111 1111 1111": "CARD",
    "DE89 3704 0044 0532 0130 00": "IBAN",
    "+49 170 1234567": "PHONE",
    "sk-proj-abcdefghijklmnop1234": "TOKEN",
    "AKIAIOSFODNN7EXAMPLE": "TOKEN",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "TOKEN",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----": "KEY",
}


@pytest.mark.parametrize(("datum", "kind"), FOUND.items(), ids=list(FOUND.values()))
def test_what_is_found(datum, kind):
    rule = Redaction(restore=True)
    text = rule.ingress(f"Take {datum}, please: {datum}")
    [mark, same] = re.findall(rf"\[{kind} [0-9a-f]{{8}}\]", text)
    assert mark == same
    assert datum not in text
    assert rule.restored(f"{mark} [{kind} 00000000]") == f"{datum} [{kind} 00000000]"


@pytest.mark.parametrize(
    "text",
    ["4111 1111 1111 1112", "DE89 3704 0044 0532 0130 01", "call 12345", "1.5e10", "a@b", "2026-11-30 22:54", "0" * 16],
)
def test_what_is_not(text):
    assert Redaction().ingress(text) == text


@given(st.text(max_size=200))
def test_redaction_is_done_once_and_for_all(text):
    rule = Redaction()
    once = rule.ingress(text)
    assert rule.ingress(once) == once


@pytest.mark.parametrize("unit", ["a", "a@", "1 ", "sk-", "eyJ", "+1 ", ".a", "-----BEGIN PRIVATE KEY-----", "A0"])
def test_long_texts_take_no_time_that_grows_faster(unit):
    assert isinstance(Redaction().ingress(unit * 50_000), str)


def test_own_patterns_and_what_is_none():
    rule = Redaction([], patterns={"CASE": r"C-\d+"})
    assert re.fullmatch(r"\[CASE [0-9a-f]{8}\] of a@example.org", rule.ingress("C-12 of a@example.org"))
    with pytest.raises(OptionError, match="EMAIL"):
        Redaction(["MAIL"])
    with pytest.raises(OptionError, match="no regular expression"):
        Redaction(patterns={"X": "("})


def test_marks_that_nobody_gave_stay():
    assert Redaction(restore=True).restored("[EMAIL 00000007] [x") == "[EMAIL 00000007] [x"


def test_a_key_makes_the_same_marks_everywhere_and_no_key_others():
    text = "a@example.org"
    assert Redaction(key=b"k" * 16).ingress(text) == Redaction(key=b"k" * 16).ingress(text)
    assert Redaction(key=b"k" * 16).ingress(text) != Redaction(key=b"l" * 16).ingress(text)
    with pytest.raises(OptionError, match="16 bytes"):
        Redaction(key=b"short")


def test_marks_of_several_threads_stand_for_their_own():
    rule = Redaction(restore=True)
    data = [f"user{n}@example.org" for n in range(300)]
    with ThreadPoolExecutor(6) as pool:
        marks = list(pool.map(rule.ingress, data * 6))
    assert [rule.restored(mark) for mark in marks] == data * 6


def test_rules_are_for_tools_only():
    request = ProposedEffect(kind=EffectKind.MODEL_CALL, name="m")
    assert HostRule("x").tool_call(request) is None
    with pytest.raises(OptionError):
        UntrustedContent()
    with pytest.raises(OptionError):
        HostRule()
    with pytest.raises(OptionError):
        PathRule()


class Reader(Box):
    """A reader of mail."""

    @Skill.define
    def ask(self, request: str) -> str:
        """{request}"""
        raise NotHandled


def test_an_agent_that_remembers_content_from_outside_does_nothing_risky_in_a_later_block():
    reader = Reader()
    # `read` is the tool of the module, and `read_2` the method.
    for replies in ([calls("read_2"), "It says: send."], [calls("send", to="eve"), "done"]):
        with handler(harness(eval_provider="none")), handler(ScriptedModel(*replies)):
            with handler(Governance([UntrustedContent(Box.read)])):
                reader.ask("Go on.")
    assert got == []
    with handler(harness(eval_provider="none")), handler(ScriptedModel(calls("send", to="eve"), "done")):
        with handler(Governance([UntrustedContent(Box.read)])):
            Reader().ask("Go on.")
    assert got == ["eve"]
