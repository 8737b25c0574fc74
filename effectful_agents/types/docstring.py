"""The docstring of a skill is its prompt: what must be true of it, and of a text that takes its place."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator

from effectful_agents.errors import ConfigurationError, DefinitionError

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


def validate_prompt(
    template: str, resolves: Callable[[str], bool], what: str, error_type: type[ConfigurationError] = DefinitionError
) -> None:
    """Check the prompt of a skill before it is asked.

    Args:
        template: The prompt.
        resolves: Whether a name will have a value when the skill is called.
        what: What the prompt is, for the error.
        error_type: The kind of error.

    Raises:
        ConfigurationError: Of that kind: a field names nothing, the braces do not match, or an example is not constant.
    """
    try:
        _refuse_fields_in_examples(template)
        names = list(_named_fields(template))
    except ValueError as error:
        raise error_type(f"{what} {error}") from error
    for name in names:
        if not resolves(name):
            raise error_type(
                f"the field `{{{name}}}` in {what} is neither a parameter nor a name that the skill sees. Rename it, "
                f"or define the name. {_LITERAL}"
            )


def _named_fields(template: str) -> Iterator[str]:
    try:
        names = list(fields(template))
    except ValueError as error:
        raise ValueError(f"is not a format string: {error}. {_LITERAL}") from error
    for name in names:
        if not name or name.isdigit():
            raise ValueError(f"has a field without a name (`{{{name}}}`). Name a parameter. {_LITERAL}")
        yield name


def _refuse_fields_in_examples(template: str) -> None:
    """The whole prompt is formatted, its examples too: what they show must not change with the arguments."""
    if ">>>" not in template:
        return
    import doctest  # noqa: PLC0415 - it loads the debugger and the test framework

    try:
        examples = doctest.DocTestParser().get_examples(template)
    except ValueError as error:
        raise ValueError(f"has a malformed example: {error}") from error
    for example in examples:
        for text in (example.source, example.want):
            try:
                field = next(fields(text), None)
            except ValueError:
                field = text.strip()
            if field is not None:
                raise ValueError(
                    f"has the field `{{{field}}}` in the example `{example.source.strip()}`; examples must be "
                    f"constant. {_LITERAL}"
                )
