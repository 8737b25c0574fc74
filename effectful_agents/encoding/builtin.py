"""The codecs that come with the package, by the same call with which users add theirs.

Classes of other packages are named and not imported: whoever has a value of one has imported it.
"""

from __future__ import annotations

import base64
import io
import pathlib
import re
import types
from typing import Annotated, Any

import pydantic

from effectful_agents.encoding import binary
from effectful_agents.encoding import snippets as _snippets  # noqa: F401 - registers its codec
from effectful_agents.encoding.functions import source_of_function
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.registry import Codec, add, register
from effectful_agents.messages import Image
from effectful_agents.types import Tool

__all__: list[str] = []


# --- bytes ------------------------------------------------------------------------------------------------------------

_Bytes = Annotated[str, pydantic.Field(description=binary.SCHEMA["description"])]

register(bytearray, Codec(_Bytes, binary.write, lambda text: bytearray(binary.read(text))))
register(memoryview, Codec(_Bytes, binary.write, lambda text: memoryview(binary.read(text))))

# Pydantic knows the classes of paths themselves.
_Path = Annotated[str, pydantic.Field(json_schema_extra={"format": "path"})]
add(pathlib.PurePath, lambda kind: Codec(_Path, str, kind))


# --- code, and what performs it ---------------------------------------------------------------------------------------


# Bare where no annotation says that it is a function; `functions` has what a model writes.
for _kind in (types.FunctionType, types.MethodType):
    register(_kind, Codec(str, source_of_function))
# By their names: what they can do the model learns from the tools it is offered.
register(Tool, Codec(str, lambda tool: tool.__name__))


# --- pictures ---------------------------------------------------------------------------------------------------------

_DATA = re.compile(r"data:image/[\w.+-]+;base64,(.*)", re.DOTALL)


def _picture_part(picture: Any) -> Image:
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{binary.b64(buffer.getvalue())}"}}


def _picture(part: Image) -> Any:
    from PIL import Image as pillow  # noqa: PLC0415 - optional

    match = _DATA.fullmatch(part["image_url"]["url"])
    if match is None:
        raise ValueError("a picture is wanted as a `data:image/…;base64,` address")
    try:
        picture = pillow.open(io.BytesIO(base64.b64decode(match[1], validate=True)))
        picture.load()
    except Exception as error:  # readers of malformed and of far too large pictures raise all kinds
        raise ValueError("the picture cannot be read") from error
    return picture


register("PIL.Image.Image", Codec(Image, _picture_part, _picture))


# --- arrays and tables: shown, not read -------------------------------------------------------------------------------


def _array(array: Any) -> str:
    import numpy  # noqa: PLC0415 - optional

    text = numpy.array2string(array, separator=", ", threshold=1000)
    return f"array of shape {array.shape}, dtype {array.dtype}:\n{text}"


_ROWS = 60
"""Rows of a table that are shown; of a longer one the first and the last."""


def _table(table: Any) -> str:
    kinds = ", ".join(f"{name}: {kind}" for name, kind in table.dtypes.items())
    return f"table of shape {table.shape}, dtypes {kinds}:\n{table.to_string(max_rows=_ROWS)}"


def _column(column: Any) -> str:
    return f"column of shape {column.shape}, dtype {column.dtype}:\n{column.to_string(max_rows=_ROWS)}"


def _scalar(kind: Any) -> Codec:
    forms: dict[str, Any] = {"i": int, "u": int, "f": float, "b": bool, "U": str}
    form = forms.get(kind(0).dtype.kind if kind.__name__ != "generic" else "")
    if form is None:
        return Codec(str, str)

    def read(value: Any) -> Any:
        try:
            return kind(value)
        except OverflowError as error:
            raise ValueError(f"it is too large for {type_name(kind)}") from error

    return Codec(form, lambda value: value.item(), read)


register("numpy.ndarray", Codec(str, _array))
register("numpy.generic", _scalar)
for _module in ("pandas", "pandas.core.frame", "pandas.core.series"):
    register(f"{_module}.DataFrame", Codec(str, _table))
    register(f"{_module}.Series", Codec(str, _column))
