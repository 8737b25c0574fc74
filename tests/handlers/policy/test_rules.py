"""The rules that are ready for `Governance`."""

from __future__ import annotations

import dataclasses
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Tool, handler
from effectful_agents.errors import EncodingError, OptionError, StepDenied
from effectful_agents.handlers.policy import Governance
from effectful_agents.handlers.policy.rules import ArgumentRule, HostRule, PathRule, Redaction, UntrustedContent
from effectful_agents.operations.policy import EffectKind, ProposedEffect

got: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_got() -> None:
    got.clear()


@Tool.define
def read(path: str) -> str:
    """Read a file."""
    got.append(path)
    return "text"


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


def denied(rule: Any, tool: Any, *args: Any) -> str | None:
    """What a call is told, if it is refused."""
    with handler(Governance([rule])):
        try:
            tool(*args)
        except StepDenied as error:
            return str(error)
    return None


# --- arguments --------------------------------------------------------------------------------------------------------


def test_arguments_by_predicate_and_schema():
    assert denied(ArgumentRule(read, lambda arguments: "x" in arguments["path"]), read, "y")
    assert not denied(ArgumentRule(read, lambda arguments: "x" in arguments["path"]), read, "x")
    schema = {"properties": {"path": {"pattern": "^[a-z]+$"}}}
    assert "does not match" in str(denied(ArgumentRule(read, schema=schema), read, "A/../b"))
    assert not denied(ArgumentRule(fetch, schema=schema), read, "A")
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


# --- hosts ------------------------------------------------------------------------------------------------------------

ALLOWED = ("https://example.org/a?b=c", "http://EXAMPLE.org:8080", "https://api.example.net/x", "https://example.org./")
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
