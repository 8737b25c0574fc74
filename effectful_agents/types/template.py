"""A prompt as data: its text, and how the text is told apart from others."""

from __future__ import annotations

import dataclasses
import functools
import hashlib

from effectful_agents.errors import PromptError

__all__ = ["PromptTemplate", "PromptVersion"]


@dataclasses.dataclass(frozen=True, slots=True)
class PromptVersion:
    """Which prompt something was made with, without its text.

    Attributes:
        name: Name of the prompt.
        version: Its version, as its author counts.
        digest: Twelve digits of the SHA-256 of the text: they tell two texts apart whose version was not changed.
    """

    name: str
    version: str
    digest: str


class _OfText(str):
    """A version that nobody gave: the digest of a text. `dataclasses.replace` with another text makes another."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class PromptTemplate:
    """A prompt with its version; its text may take the place of a skill's docstring.

    Args:
        name: Its name: that of a skill, such as `triage` or `Desk.triage`, or one that a skill asks for.
        text: The text, to the letter, with fields as in a docstring.
        version: Its version; by default the digest of the text.
        source: Where it comes from, for errors.

    Raises:
        PromptError: The name or the text is empty, or something is not a text.

    >>> PromptTemplate("triage", "Sort this: {ticket}", version="2").stamp
    PromptVersion(name='triage', version='2', digest='d4d81cd3da03')
    """

    name: str
    text: str
    version: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, str):
                raise PromptError(f"the {field.name} of {self._mention()} is {value!r}; it must be a text.")
        if not self.name.strip():
            raise PromptError(f"{self._mention()} has no name.")
        if not self.text.strip():
            raise PromptError(f"{self._mention()} has no text.")
        if not self.version or isinstance(self.version, _OfText):
            object.__setattr__(self, "version", _OfText(self.digest))

    @functools.cached_property
    def digest(self) -> str:
        """Twelve digits of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    @functools.cached_property
    def stamp(self) -> PromptVersion:
        """What a record says of it."""
        return PromptVersion(self.name, str(self.version), self.digest)

    def _mention(self) -> str:
        return f"the prompt `{self.name}`{f' of {self.source}' if self.source else ''}"

    def __str__(self) -> str:
        where = f", from {self.source}" if self.source else ""
        return f"the prompt `{self.name}` (version {self.version}{where})"
