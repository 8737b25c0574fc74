"""Prompts in files: what may stand in them, what is refused with its place, and reading them again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.errors import MissingDependencyError, PromptError
from effectful_agents.handlers.legibility import FilePrompts, InMemoryPrompts, PromptProvider, PromptRegistry
from effectful_agents.handlers.legibility.prompt_trees import read_json, read_yaml, templates_of
from effectful_agents.handlers.legibility.prompts import without_empty_lines


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(name: str, text: str | bytes) -> FilePrompts:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return FilePrompts(name)


def all_of(prompts: FilePrompts) -> dict[str, tuple[str, str]]:
    """Text and version by name; a version that was not given is None."""
    found: Any = {name: prompts.find(name) for name in prompts.names()}
    return {name: (one.text, None if one.version == one.digest else one.version) for name, one in found.items()}


# What may stand in a file


def test_json(folder):
    text = '{"triage": "Sort\\n{ticket}.\\n", "Desk.ask": {"version": "2", "text": "{question}"}}'
    expected = {"triage": ("Sort\n{ticket}.", None), "Desk.ask": ("{question}", "2")}
    assert all_of(written("p.json", text)) == expected


def test_yaml(folder):
    text = "# ours\ntriage: |\n  Sort\n    {ticket}.\n\nDesk.ask:\n  version: 2\n  text: '{question}'\n"
    expected = {"triage": ("Sort\n  {ticket}.", None), "Desk.ask": ("{question}", "2")}
    assert all_of(written("p.yaml", text)) == all_of(written("p.yml", text)) == expected


def test_markdown_is_one_prompt_with_the_name_of_its_file(folder):
    text = "\n# Sort\n\n---\n\n{ticket}.\n\n"
    assert all_of(written("triage.md", text)) == {"triage": ("# Sort\n\n---\n\n{ticket}.", None)}


def test_markdown_may_say_its_name_and_version_first(folder):
    text = "---\nname: Desk.ask # of the desk\nversion: 1.10\n---\n\n  {question}\n"
    assert all_of(written("whatever.markdown", text)) == {"Desk.ask": ("  {question}", "1.10")}
    assert all_of(written("empty.md", "---\n---\ntext")) == {"empty": ("text", None)}


def test_a_folder_has_the_prompts_of_its_markdown_files(folder):
    written("prompts/triage.md", "Sort {ticket}.")
    written("prompts/ask.md", "---\nname: Desk.ask\n---\n{question}")
    written("prompts/notes.txt", "no prompt")
    written("prompts/.draft.md", "hidden")
    written("prompts/inside/other.md", "further inside")
    prompts = FilePrompts("prompts")
    assert all_of(prompts) == {"triage": ("Sort {ticket}.", None), "Desk.ask": ("{question}", None)}
    found = prompts.find("triage")
    assert found is not None
    assert found.source == os.path.join("prompts", "triage.md")


@pytest.mark.parametrize("version", ["1.10", "2026-11-30", "1e3", "0x10", "'no'", "v2"])
def test_a_version_is_what_is_written(folder, version):
    prompts = written("p.yaml", f"a: {{text: x, version: {version}}}")
    assert all_of(prompts) == {"a": ("x", version.strip("'"))}


def test_a_number_as_a_version_in_json_is_what_is_written(folder):
    assert all_of(written("p.json", '{"a": {"text": "x", "version": 1.10}}')) == {"a": ("x", "1.10")}


def test_yaml_words_that_mean_something_are_names_like_others(folder):
    assert sorted(written("p.yaml", "no: x\non: x\n1.10: x\nnull: x\n").names()) == ["1.10", "no", "null", "on"]


def test_anchors_of_yaml_work(folder):
    prompts = written("p.yaml", "a: &it {text: x, version: 1}\nb: *it\n")
    assert all_of(prompts) == {"a": ("x", "1"), "b": ("x", "1")}


def test_the_digest_does_not_depend_on_the_ends_of_lines_or_a_mark_at_the_beginning(folder):
    texts = [b"one\ntwo\n", b"one\r\ntwo\r\n", b"\xef\xbb\xbfone\ntwo"]
    found = [written(f"{number}/a.md", text).find("a") for number, text in enumerate(texts)]
    assert len({one.version for one in found if one}) == 1


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5)
LINES = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=9)
TEXTS = st.lists(LINES, min_size=1, max_size=4).map("\n".join).filter(str.strip)
VALUES = TEXTS | st.fixed_dictionaries({"text": TEXTS}, optional={"version": NAMES})


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_json_and_yaml_say_the_same(prompts):
    trees = [read_json(json.dumps(prompts), "p")]
    trees += [
        read_yaml(yaml.safe_dump(prompts, allow_unicode=unicode, sort_keys=False), "p") for unicode in (True, False)
    ]
    one, *others = [list(templates_of(tree, "p")) for tree in trees if tree is not None]
    assert others == [one, one]
    assert {template.name for template in one} == set(prompts)


# What is refused


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        # JSON
        ("p.json", "", "p.json, line 1, column 1: no JSON: Expecting value."),
        ("p.json", '{"a": "x",\n "b" "y"}', "p.json, line 2, column 6: no JSON: Expecting ':' delimiter."),
        ("p.json", '{"a": "x", "a": "y"}', "p.json: `a`: `a` stands there twice."),
        ("p.json", '{"a": {"text": "x", "text": "y"}}', "p.json: `a`: `text`: `text` stands there twice."),
        ("p.json", '["a"]', "p.json: the whole is a list; it must be a mapping."),
        ("p.json", '{"a": 3}', "p.json: `a`: the prompt `a` is a number; it must be a text, or a mapping"),
        ("p.json", '{"a": null}', "p.json: `a`: the prompt `a` is null"),
        ("p.json", '{"a": true}', "p.json: `a`: the prompt `a` is a truth value"),
        ("p.json", '{"a": {"text": ["x"]}}', "p.json: `a`: `text`: the `text` is a list; it must be a text."),
        ("p.json", '{"a": {"text": 3}}', "p.json: `a`: `text`: the `text` is a number"),
        ("p.json", '{"a": {"text": "x", "version": null}}', "p.json: `a`: `version`: the `version` is null"),
        ("p.json", '{"a": {"version": "1"}}', "p.json: `a`: the prompt `a` has no `text`."),
        (
            "p.json",
            '{"a": {"text": "x", "verison": "1"}}',
            "p.json: `a`: `verison`: the prompt `a` has a key `verison`; it can have `text` and `version`.",
        ),
        ("p.json", '{"a": " \\n"}', "the prompt `a` of p.json has no text."),
        ("p.json", '{"": "x"}', "the prompt `` of p.json has no name."),
        ("p.json", "[" * 200_000, "p.json: it is nested too deeply."),
        # YAML
        ("p.yaml", "", "p.yaml: the file is empty."),
        ("p.yaml", "# nothing\n", "p.yaml: the file is empty."),
        ("p.yaml", "a: x\nb: [y\n", "p.yaml, line 3, column 1: no YAML: expected ',' or ']'"),
        ("p.yaml", "a: x\nb: y\na: z\n", "p.yaml, line 3, column 1: `a` stands there twice."),
        ("p.yaml", "a:\n  text: x\n  text: y\n", "p.yaml, line 3, column 3: `text` stands there twice."),
        ("p.yaml", "- a\n", "p.yaml, line 1, column 1: the whole is a list"),
        ("p.yaml", "just a text", "p.yaml, line 1, column 1: the whole is a text; it must be a mapping."),
        ("p.yaml", "a:\nb: y\n", "p.yaml, line 1, column 3: the prompt `a` is null"),
        ("p.yaml", "a: 3\n", "p.yaml, line 1, column 4: the prompt `a` is a number"),
        ("p.yaml", "a: no\n", "p.yaml, line 1, column 4: the prompt `a` is a truth value"),
        ("p.yaml", "a: !mine x\n", "p.yaml, line 1, column 4: the prompt `a` is something of the type `!mine`"),
        ("p.yaml", "a: !!python/name:os.system x\n", "the prompt `a` is something of the type `"),
        ("p.yaml", "a: {text: x, version: [1]}\n", "p.yaml, line 1, column 23: the `version` is a list"),
        ("p.yaml", "? [a]\n: x\n", "p.yaml, line 1, column 3: a key must be a text."),
        ("p.yaml", "a: &b {text: x}\nc:\n  <<: *b\n", "p.yaml, line 3, column 3: a key must be a text."),
        ("p.yaml", "a: x\n---\nb: y\n", "p.yaml, line 2, column 1: no YAML: but found another document."),
        ("p.yaml", "a: \x01\n", "p.yaml: no YAML: unacceptable character"),
        ("p.yaml", "[" * 500, "p.yaml: it is nested too deeply."),
        # Markdown
        ("p.md", "", "the prompt `p` of p.md has no text."),
        ("p.md", "---\nversion: 1\n---\n\n", "the prompt `p` of p.md has no text."),
        (
            "p.md",
            "---\nversion: 1\nSort it.",
            "p.md, line 1: what begins with `---` has no second line `---` to end it.",
        ),
        ("p.md", "---\nauthor: me\n---\nx", "p.md, line 2, column 9: what stands before the text has a key `author`"),
        ("p.md", "---\nversion: 1\nversion: 2\n---\nx", "p.md, line 3, column 1: `version` stands there twice."),
        ("p.md", "---\nversion: {\n---\nx", "p.md, line 2, column 11: no YAML"),
        ("p.md", "---\nwords\n---\nx", "p.md, line 2, column 1: what stands before the text is a text"),
        # Any
        ("p.json", b'{"a":\n "\xe9"}', "p.json, line 2: byte 8 is not UTF-8"),
        ("p.md", b"caf\xe9", "p.md, line 1: byte 3 is not UTF-8"),
        ("p.txt", "x", "p.txt: what kind of file this is its name does not say; it ends in `.json`, `.yaml`"),
        ("prompts", "x", "prompts: what kind of file this is its name does not say"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(folder, name, text, message):
    prompts = written(name, text)
    with pytest.raises(PromptError) as raised:
        prompts.find("a")
    assert message in str(raised.value)


@pytest.mark.parametrize("name", ["p.json", "p.yaml", "p.md", "prompts"])
def test_a_missing_file_is_an_error_at_its_first_use(folder, name):
    prompts = FilePrompts(name)
    with pytest.raises(PromptError, match=rf"^{name}: there is no such file"):
        prompts.names()
    os.makedirs("a.json")
    with pytest.raises(PromptError, match="no Markdown file"):
        FilePrompts("a.json").names()


def test_a_file_that_cannot_be_opened_is_named(folder):
    with pytest.raises(PromptError, match=r"aaa\.json: cannot be read: File name too long"):
        FilePrompts("a" * 300 + ".json").names()


def test_two_files_of_a_folder_may_not_have_the_same_name(folder):
    written("prompts/a.md", "x")
    written("prompts/b.md", "---\nname: a\n---\ny")
    with pytest.raises(PromptError) as raised:
        FilePrompts("prompts").names()
    assert str(raised.value) == f"prompts{os.sep}b.md: prompts{os.sep}a.md has a prompt `a` too."


def test_without_pyyaml_the_error_says_what_to_install_and_json_works(folder):
    program = """
import sys
sys.modules["yaml"] = None
from effectful_agents.errors import MissingDependencyError
from effectful_agents.handlers.legibility import FilePrompts
print(FilePrompts("p.json").find("a").text, FilePrompts("a.md").find("a").text)
for name in ("p.yaml", "b.md"):
    try:
        FilePrompts(name).names()
    except MissingDependencyError as error:
        print(error)
"""
    for name, text in {"p.json": '{"a": "x"}', "a.md": "y", "p.yaml": "a: x", "b.md": "---\nname: x\n---\ny"}.items():
        written(name, text)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "x y",
        'p.yaml: YAML needs PyYAML: pip install "effectful-agents[yaml]"',
        'b.md: YAML needs PyYAML: pip install "effectful-agents[yaml]"',
    ], done.stderr
    assert issubclass(MissingDependencyError, ImportError)


# Reading, and reading again


def test_a_file_is_read_at_its_first_use_and_kept(folder):
    prompts = FilePrompts("p.json")
    written("p.json", '{"a": "old"}')
    assert all_of(prompts) == {"a": ("old", None)}
    written("p.json", '{"a": "new", "b": "more"}')
    assert all_of(prompts) == {"a": ("old", None)}
    prompts.reload()
    assert all_of(prompts) == {"a": ("new", None), "b": ("more", None)}


def test_a_file_that_was_wrong_is_tried_again(folder):
    prompts = written("p.json", "{")
    with pytest.raises(PromptError):
        prompts.names()
    written("p.json", '{"a": "x"}')
    assert list(prompts.names()) == ["a"]


@pytest.mark.parametrize("text", ["{", '{"a": "new", "b": 3}', "", b"\xff"])
def test_a_wrong_file_leaves_the_prompts_as_they_were(folder, text):
    prompts = written("p.json", '{"a": "old"}')
    assert list(prompts.names()) == ["a"]
    written("p.json", text)
    with pytest.raises(PromptError):
        prompts.reload()
    assert all_of(prompts) == {"a": ("old", None)}
    os.remove("p.json")
    with pytest.raises(PromptError):
        prompts.reload()
    assert all_of(prompts) == {"a": ("old", None)}


def test_a_registry_reloads_all_of_its_files_or_none(folder):
    first, second = written("p.json", '{"a": "old"}'), written("q.json", '{"b": "old"}')
    registry = PromptRegistry(first, InMemoryPrompts({"c": "x"}), PromptRegistry(second))
    assert [registry.prompt(name).text for name in "abc"] == ["old", "old", "x"]
    written("p.json", '{"a": "new"}')
    written("q.json", "{")
    with pytest.raises(PromptError, match=r"q\.json"):
        registry.reload()
    assert [registry.prompt(name).text for name in "ab"] == ["old", "old"]
    written("q.json", '{"b": "new"}')
    registry.reload()
    assert [registry.prompt(name).text for name in "ab"] == ["new", "new"]


def test_what_was_read_first_does_not_replace_what_was_read_later(folder):
    prompts = written("p.json", '{"a": "1"}')
    slow = prompts.prepare_reload()
    written("p.json", '{"a": "2"}')
    prompts.reload()
    slow()
    assert all_of(prompts) == {"a": ("2", None)}


def test_a_relative_path_is_one_from_where_it_was_given(folder, monkeypatch):
    prompts = written("p.json", '{"a": "x"}')
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    found = prompts.find("a")
    assert found is not None
    assert (found.source, repr(prompts)) == ("p.json", "FilePrompts('p.json')")
    assert all_of(FilePrompts(folder / "p.json")) == all_of(prompts)


def test_threads_that_come_first_together_get_the_same(folder):
    prompts = written("p.yaml", "".join(f"prompt{number}: text {number}\n" for number in range(50)))
    together = threading.Barrier(8)
    found = []

    def look() -> None:
        together.wait()
        found.append([prompts.find(f"prompt{number}") for number in range(50)])

    threads = [threading.Thread(target=look) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 8
    assert all(one is other for others in found for one, other in zip(found[0], others, strict=True))


def test_all_of_them_are_providers():
    for provider in (InMemoryPrompts(), FilePrompts("p.json"), PromptRegistry()):
        assert isinstance(provider, PromptProvider)


# What cannot be


@pytest.mark.parametrize("path", ["", "a\0b.json"])
def test_a_path_of_no_file_is_refused_at_once(path):
    with pytest.raises(PromptError, match="names a file or a folder"):
        FilePrompts(path)


def test_a_few_lines_of_yaml_cannot_stand_for_a_billion(folder):
    lines = ["a0: &a0 {text: y}", *(f"a{n}: &a{n} {{x: *a{n - 1}, z: *a{n - 1}}}" for n in range(1, 40))]
    with pytest.raises(PromptError, match="too often"):
        written("p.yaml", "\n".join(lines)).names()
    with pytest.raises(PromptError, match=r"too often|too deeply"):
        written("p.yaml", "a: &x {text: *x}").names()
    assert all_of(written("p.yaml", "a: &t Sort.\nb: *t")) == {"a": ("Sort.", None), "b": ("Sort.", None)}


@given(st.text(alphabet="x \t\n", max_size=12))
def test_empty_lines_are_dropped_at_both_ends(text):
    lines = without_empty_lines(text).split("\n")
    assert lines == [""] or (lines[0].strip() and lines[-1].strip())
    assert without_empty_lines(text) in text
