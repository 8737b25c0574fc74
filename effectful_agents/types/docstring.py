"""The docstring of a skill is its prompt: what must be true of it when the skill is defined."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator

from effectful_agents.errors import DefinitionError

__all__ = ["fields", "validate_prompt"]

_formatter = string.Formatter()
_LITERAL = "Write literal braces as `{{` and `}}`."


def fields(template: str) -> Iterator[str]:
    """The root names of the `{…}` fields of a template, those in format specifications included.

    Raises:
        ValueError: The braces do not match.

    >>> list(fields("{user.name} has {count:>{width}} of {{these}}"))
    ['user', 'count', 'width']
    """
    for _, field, specification, _ in _formatter.parse(template):
        if field is None:
            continue
        yield field.partition(".")[0].partition("[")[0]
        if specification:
            yield from fields(specification)


def validate_prompt(skill: str, template: str, resolves: Callable[[str], bool]) -> None:
    """Check the docstring of a skill that is being defined.

    Args:
        skill: Name of the skill, for the error.
        template: The docstring.
        resolves: Whether a name will have a value when the skill is called.

    Raises:
        DefinitionError: A field names nothing, the braces do not match, or an example is not constant.
    """
    _refuse_fields_in_examples(skill, template)
    try:
        names = list(fields(template))
    except ValueError as error:
        raise DefinitionError(
            f"the docstring of the skill `{skill}` is not a format string: {error}. {_LITERAL}"
        ) from error
    for name in names:
        if not name or name.isdigit():
            raise DefinitionError(
                f"the docstring of the skill `{skill}` has a field without a name (`{{{name}}}`). Name a parameter. "
                + _LITERAL
            )
        if not resolves(name):
            raise DefinitionError(
                f"the field `{{{name}}}` in the docstring of the skill `{skill}` is neither a parameter nor a name "
                f"that the skill sees. Rename it, or define the name. {_LITERAL}"
            )


def _refuse_fields_in_examples(skill: str, template: str) -> None:
    """The whole docstring is formatted, its examples too: what they show must not change with the arguments."""
    if ">>>" not in template:
        return
    import doctest  # noqa: PLC0415 - it loads the debugger and the test framework

    try:
        examples = doctest.DocTestParser().get_examples(template)
    except ValueError as error:
        raise DefinitionError(f"an example in the docstring of the skill `{skill}` is malformed: {error}") from error
    for example in examples:
        for text in (example.source, example.want):
            try:
                field = next(fields(text), None)
            except ValueError:
                field = text.strip()
            if field is not None:
                raise DefinitionError(
                    f"the example `{example.source.strip()}` in the docstring of the skill `{skill}` has the field "
                    f"`{{{field}}}`; examples must be constant. {_LITERAL}"
                )
