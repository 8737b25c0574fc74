"""Prompts in files: JSON, YAML, Markdown."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from effectful_agents.errors import PromptError
from effectful_agents.handlers.legibility.prompt_trees import Read, Tree, read_json, read_yaml, templates_of
from effectful_agents.handlers.legibility.prompts import without_empty_lines
from effectful_agents.operations.templates import PromptTemplate

__all__ = ["FilePrompts"]

type _Prompts = Mapping[str, PromptTemplate]

_TREES: Mapping[str, Read] = {".json": read_json, ".yaml": read_yaml, ".yml": read_yaml}
_MARKDOWN = (".md", ".markdown")


class FilePrompts:
    """Prompts in a file, or in a folder of Markdown files.

    A JSON or YAML file has a mapping of names to texts, or to a `text` and a `version`. A Markdown file is one prompt:
    its name is that of the file, and between two lines `---` at its beginning it may say a `name` and a `version`. A
    folder has the prompts of its Markdown files, not of those in folders inside.

    The file is read at the first use, and kept. `reload` reads it again. YAML, before a Markdown text too, needs
    PyYAML: `pip install "effectful-agents[yaml]"`.

    Args:
        path: The file or the folder. A relative path is one from the working directory of now.

    Raises:
        PromptError: The path is empty, or could be that of no file.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "prompts.json")
    ...     _ = file.write_text('{"triage": {"version": "2", "text": "Sort {ticket}."}, "thank": "Thank {name}."}')
    ...     prompts = FilePrompts(file)
    ...     prompts.find("triage").version, sorted(prompts.names())
    ('2', ['thank', 'triage'])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._shown = os.fspath(path)
        if not self._shown or "\0" in self._shown:
            raise PromptError(f"the path of `FilePrompts` is {self._shown!r}; it names a file or a folder.")
        self._path = Path(os.path.abspath(path))
        self._lock = threading.Lock()
        self._prompts: _Prompts | None = None
        self._begun = self._put = 0

    def __repr__(self) -> str:
        return f"FilePrompts({self._shown!r})"

    def find(self, name: str) -> PromptTemplate | None:
        """The prompt of this name, or None.

        Raises:
            PromptError: The file is missing or wrong.
        """
        return self._loaded().get(name)

    def names(self) -> Collection[str]:
        """The names of all prompts.

        Raises:
            PromptError: The file is missing or wrong.
        """
        return self._loaded().keys()

    def reload(self) -> None:
        """Read the file again.

        Raises:
            PromptError: The file is missing or wrong; the prompts stay as they were.
        """
        self.prepare_reload()()

    def prepare_reload(self) -> Callable[[], None]:
        """Read the file again, and return the function that puts what was read in place."""
        with self._lock:
            self._begun += 1
            begun = self._begun
        prompts = self._read()

        def put() -> None:
            with self._lock:
                if begun > self._put:  # or another thread, which began later, has read what is newer
                    self._prompts, self._put = prompts, begun

        return put

    def _loaded(self) -> _Prompts:
        prompts = self._prompts
        if prompts is None:
            with self._lock:
                prompts = self._prompts = self._read() if self._prompts is None else self._prompts
        return prompts

    def _read(self) -> _Prompts:
        if not os.path.isdir(self._path):  # unlike the method, it never raises
            return _prompts_of_file(self._path, self._shown)
        prompts: dict[str, PromptTemplate] = {}
        for path in self._markdown_files():
            template = _prompt_of_markdown(path, os.path.join(self._shown, path.name))
            other = prompts.setdefault(template.name, template)
            if other is not template:
                raise PromptError(f"{template.source}: {other.source} has a prompt `{template.name}` too.")
        if not prompts:
            raise PromptError(f"{self._shown}: there is no Markdown file (`*.md`) in the folder.")
        return prompts

    def _markdown_files(self) -> list[Path]:
        try:
            found = sorted(self._path.iterdir())
        except OSError as error:  # pragma: no cover - a folder of somebody else's
            raise PromptError(f"{self._shown}: cannot be read: {error.strerror}.") from error
        return [path for path in found if path.suffix in _MARKDOWN and path.name[0] != "." and os.path.isfile(path)]


def _prompts_of_file(path: Path, shown: str) -> _Prompts:
    if path.suffix in _MARKDOWN:
        template = _prompt_of_markdown(path, shown)
        return {template.name: template}
    read = _TREES.get(path.suffix)
    if read is None:
        if not os.path.exists(path):
            raise PromptError(f"{shown}: there is no such file or folder.")
        known = ", ".join(f"`{suffix}`" for suffix in (*_TREES, *_MARKDOWN))
        raise PromptError(f"{shown}: what kind of file this is its name does not say; it ends in {known}.")
    tree = read(_text(path, shown), shown)
    if tree is None:
        raise PromptError(f"{shown}: the file is empty.")
    return {template.name: template for template in templates_of(tree, shown)}


def _prompt_of_markdown(path: Path, shown: str) -> PromptTemplate:
    text = _text(path, shown)
    lines = text.split("\n")
    matter: Tree | None = None
    if lines[0].rstrip() == "---":
        end = next((place for place, line in enumerate(lines) if place and line.rstrip() == "---"), None)
        if end is None:
            raise PromptError(f"{shown}, line 1: what begins with `---` has no second line `---` to end it.")
        matter = read_yaml("\n".join(lines[1:end]), shown, 2)
        text = "\n".join(lines[end + 1 :])
    about = {} if matter is None else matter.fields(shown, {"name", "version"}, "what stands before the text")
    return PromptTemplate(about.get("name", path.stem), without_empty_lines(text), about.get("version", ""), shown)


def _text(path: Path, shown: str) -> str:
    """The text of a file, with one character at the ends of its lines, so that its digest is the same on any system."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise PromptError(f"{shown}: there is no such file.") from None
    except OSError as error:
        raise PromptError(f"{shown}: cannot be read: {error.strerror}.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PromptError(f"{shown}, line {line}: byte {error.start} is not UTF-8: {error.reason}.") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")
