"""Usage that works at run time and that a checker may reject nevertheless: the marks say which, and where.

It is kept apart so that users can be told, and so that a better checker is noticed.
"""

from typing import assert_type

from effectful_agents import Agent, NotHandled, Skill, Tool


class Library:
    @classmethod
    @Skill.define
    def recommend(cls, mood: str) -> str:
        """Recommend a book for somebody whose mood is {mood}."""
        raise NotHandled

    @classmethod
    @Tool.define
    def shelves(cls) -> list[str]:
        """The names of the shelves."""
        return []

    @Skill.define
    @classmethod
    def summarize(cls, title: str) -> str:
        """Summarize the book {title}."""
        raise NotHandled

    @staticmethod
    @Skill.define
    def translate(text: str, language: str) -> str:
        """Translate {text} to {language}."""
        raise NotHandled

    @Tool.define
    @staticmethod
    def opening(weekday: str) -> int:
        """The hour at which the library opens."""
        return 9


# ty follows `@classmethod` where it is the outer decorator.
def classmethod_outside(library: Library) -> None:
    assert_type(Library.recommend("calm"), str)  # error: mypy pyright
    assert_type(library.recommend("calm"), str)  # error: pyright
    assert_type(Library.shelves(), list[str])  # error: mypy pyright


def classmethod_inside(library: Library) -> None:
    assert_type(Library.summarize("Momo"), str)  # error
    assert_type(library.summarize("Momo"), str)  # error: ty pyright


def staticmethod_outside(library: Library) -> None:
    assert_type(Library.translate("hello", "French"), str)
    assert_type(library.translate("hello", "French"), str)  # error: mypy pyright


def staticmethod_inside(library: Library) -> None:
    assert_type(Library.opening("Monday"), int)
    assert_type(library.opening("Monday"), int)  # error


class Bot(Agent):
    @Skill.define
    def send(self, text: str) -> str:
        """Answer {text}."""
        raise NotHandled


# pyright wants a variable that is overridden to have the same type, `self` included.
class PoliteBot(Bot):
    @Skill.define
    def send(self, text: str) -> str:  # error: pyright
        """Answer {text}, and say please."""
        raise NotHandled

    def both(self, text: str) -> None:
        assert_type(super().send(text), str)
        assert_type(self.send(text), str)
