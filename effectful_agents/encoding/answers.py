"""The answer of a skill: the form that is asked for, and the value that comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pydantic

from effectful_agents.encoding.adapters import Adapter, no_form, object_adapter, type_adapter
from effectful_agents.encoding.decoding import Misfit, explain, refuse_double_keys, validate_text
from effectful_agents.encoding.names import TypeCache, plain_type, type_name
from effectful_agents.encoding.once import one_decoding
from effectful_agents.encoding.schema import adapter_schema, json_schema
from effectful_agents.encoding.strict import admits_null, is_strict, strict_form
from effectful_agents.errors import EncodingError
from effectful_agents.messages import ResponseFormat
from effectful_agents.messages.text import safe_text

__all__ = ["AnswerCodec", "answer_codec"]


def answer_codec(tp: Any) -> AnswerCodec:
    """The codec of answers of a type, made at its first use.

    Raises:
        EncodingError: The type cannot be described.

    >>> answer_codec(int).decode('{"value": 7}'), answer_codec(int).decode("7"), answer_codec(str).decode("Seven.")
    (7, 7, 'Seven.')
    """
    codec = _codecs(tp)
    codec.check_executor()
    return codec


class AnswerCodec:
    """How a model answers with a value of one type.

    Text (`str`, with metadata or without) is the content as it is. For None nothing is asked, and whatever comes is
    None. Anything else is JSON: an object for types that are objects, and for others an object with the one property
    `value`, since providers want objects. A bare value in its place is taken as well (`7`, `Paris`).

    Attributes:
        response_format: What the request says about the form of the answer; None for text and for None. It is the
            type's own schema, which says all that it can; `strict_response_format` rewrites it for strict modes.
    """

    __slots__ = (
        "_adapter",
        "_is_none",
        "_is_text",
        "_nullable",
        "_validate",
        "_validate_text",
        "_validate_wrapped",
        "response_format",
    )

    response_format: ResponseFormat | None

    def __init__(self, tp: Any) -> None:
        self._adapter = adapter = type_adapter(tp)  # first: it refuses what is no type
        plain = plain_type(tp)
        self.response_format = None
        self._nullable = self._is_none = plain is None or plain is type(None)
        self._is_text = plain is str
        self._validate = adapter.validate_json
        self._validate_text = None if tp is str else adapter.validate_python
        self._validate_wrapped = None
        if self._is_none or self._is_text:
            return
        schema = json_schema(tp)
        self._nullable = admits_null(schema)
        if schema.get("type") != "object":
            adapter = _wrapped(tp)
            self._validate_wrapped = adapter.validate_json
            schema = adapter_schema(tp, adapter)
        self.response_format = {
            "type": "json_schema",
            "json_schema": {"name": _schema_name(tp), "schema": schema, "strict": is_strict(schema)},
        }

    def check_executor(self) -> None:
        """Refuse an answer of which a part is code, where nothing runs it.

        Raises:
            EncodingError: There is such a part.
        """
        self._adapter.check_executor()

    @property
    def loose_because(self) -> str | None:
        """Why the provider cannot be asked to hold the model to the schema as it is; None where it can."""
        if self.response_format is None or self.response_format["json_schema"]["strict"]:
            return None
        return strict_form(self.response_format["json_schema"]["schema"]).reason or "it has to be rewritten for that"

    def decode(self, content: str | None, *, context: Any = None, strict: bool = False) -> Any:
        """The value of an answer.

        Args:
            content: The text of the reply. Nothing, or blanks only, is None where the type admits None.
            context: What validators of the type see as `info.context`.
            strict: Whether nothing is forgiven: neither packaging nor loose values.

        Raises:
            ValueError: The answer is empty or does not fit the type; the message is short enough for a model.
        """
        if self._is_none:
            return None
        if content is None or not content or content.isspace():
            if self._nullable:
                return None
            raise ValueError("empty answer")
        if self._is_text:
            return self._decode_text(content, context)
        with one_decoding():
            return self._decode_json(content, context, strict=strict)

    @property
    def has_code(self) -> bool:
        """Whether a part of the answer is code, which runs when the answer is decoded."""
        return bool(self._adapter.code)

    def reader(self, data: Any) -> Callable[..., Any]:
        """What reads an answer from JSON text, where what has come of it holds this data; for answers in JSON only."""
        wrapped = self._validate_wrapped
        if wrapped is None or not isinstance(data, dict) or (data and "value" not in data):
            return self._validate
        return lambda text, **options: wrapped(text, **options)["value"]

    def _decode_text(self, content: str, context: Any) -> Any:
        if self._validate_text is None:
            return content
        try:
            return self._validate_text(safe_text(content), context=context)
        except pydantic.ValidationError as error:
            raise ValueError(explain(error.errors(include_url=False, include_context=False))) from error

    def _decode_json(self, content: str, context: Any, *, strict: bool) -> Any:
        if self._validate_wrapped is not None:
            try:
                value = self._validate_wrapped(content, context=context)["value"]
            except pydantic.ValidationError:
                return self._decode_forgiving(content, context, strict=strict)
            refuse_double_keys(content)
            return value
        return self._decode_forgiving(content, context, strict=strict)

    def _decode_forgiving(self, content: str, context: Any, *, strict: bool) -> Any:
        """Read an answer that is not quite in the form that was asked for; the error that tells most stands."""
        wrapped = self._validate_wrapped
        errors: list[Misfit] = []
        if wrapped is not None:
            try:
                return validate_text(wrapped, content, context, strict=strict)["value"]
            except Misfit as error:
                errors.append(error)
        if wrapped is None or not strict:
            try:
                return validate_text(self._validate, content, context, strict=strict)
            except Misfit as error:
                errors.append(error)
        # A bare word, unless it is the beginning of JSON that was cut.
        if wrapped is not None and not strict and content.lstrip()[0] not in '{["`':
            try:
                return validate_text(self._validate, json.dumps(content.strip()), context)
            except Misfit as error:
                errors.append(error)
        best = min(errors, key=_remoteness)
        raise ValueError(str(best)) from best


_codecs = TypeCache(AnswerCodec)


def _wrapped(tp: Any) -> Adapter:
    """The adapter of an object with the one property `value`."""
    try:
        return object_adapter("Answer", {"value": tp})
    except EncodingError:
        raise
    except Exception as error:  # `typing` refuses some annotations inside of others
        raise no_form(tp, error) from error


def _remoteness(error: Misfit) -> int:
    """How little an error says about the value: 0, about a part of it; 1, about all of it; 2, that it is not there."""
    if error.details[0]["type"] in ("json_invalid", "dict_type"):
        return 2
    outside = ("missing", "extra_forbidden")
    return int(all(not one["loc"] or (len(one["loc"]) == 1 and one["type"] in outside) for one in error.details))


def _schema_name(tp: Any) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", type_name(tp)).strip("_")[:64] or "answer"
