"""Python values and types on one side, JSON, schemas and content blocks on the other.

A type annotation is all there is to say about a value: pydantic reads it, and from the one adapter that it makes follow
the schema that a model is given, the decoding of what the model sends, and the form in which a value is shown to it.

    names        types as they are written, and caches by type
    registry     how values of a type are written and read: the codecs of users, by one call
    builtin      the codecs that come with the package
    forms        the form of a type: pydantic's core schema, rewritten
    trees        core schemas as trees of dictionaries
    annotations, fields, scalars, choices, mappings, objects, binary, recognized, marks
                 parts of that
    validation, shapes
                 a core schema as its validator gets it: places of errors, alternatives told apart by their keys
    writing, writers
                 a core schema compiled to a function that writes values
    adapters     all that follows from a type, made once
    schema, strict
                 the JSON schema of an adapter, tidied for models, and in the form that strict modes ask for
    values       `encode`: a value as JSON
    forgiving    everything that is forgiven in what a model writes
    decoding     `decode`: JSON text as a value, and errors that a model can read
    answers      the answer of a skill
    partial      an answer of which more is to come
    parameters, arguments
                 the parameters of a signature, and what a model sends for them
    functions, snippets
                 code that a model wrote: functions, and pieces for a session
    handwritten  JSON schemas that users wrote
    docstrings   descriptions of parameters and fields
    tools        a tool: its definition, its arguments, its result
    signatures   signatures as Python writes them
    calls        tool calls as a model wrote them
    blocks       JSON as content blocks
    templates    prompts with fields
    sections     sections of a prompt as Markdown
    records      records as text that is the same in every process
    questions    what people are asked, and the arguments that they amend
    formats      data as lines of text
    outputs      `Schema`: forms of output for code without a skill
    splicing     code that a model wrote, put into the module that it is for, to be checked there
    places, contracts, declarations, source_text
                 parts of that
"""

from effectful_agents.encoding.adapters import Encodable, type_adapter
from effectful_agents.encoding.answers import AnswerCodec, answer_codec
from effectful_agents.encoding.binary import b64
from effectful_agents.encoding.blocks import to_content_blocks
from effectful_agents.encoding.calls import normal_calls
from effectful_agents.encoding.decoding import decode
from effectful_agents.encoding.formats import fmt_dict, fmt_list, fmt_records
from effectful_agents.encoding.functions import EncodedFunction, SynthesizedFunction, runs_code
from effectful_agents.encoding.outputs import Schema, schema_for
from effectful_agents.encoding.parameters import json_schema_for
from effectful_agents.encoding.partial import PartialDecoder
from effectful_agents.encoding.records import dumps, to_jsonable
from effectful_agents.encoding.registry import Codec, register
from effectful_agents.encoding.schema import json_schema
from effectful_agents.encoding.sections import render_section
from effectful_agents.encoding.signatures import signature_text
from effectful_agents.encoding.strict import StrictForm, strict_form, strict_response_format
from effectful_agents.encoding.templates import format_as_content_blocks
from effectful_agents.encoding.tools import ToolCodec, encode_result, tool_codec
from effectful_agents.encoding.values import encode

__all__ = [
    "AnswerCodec",
    "Codec",
    "Encodable",
    "EncodedFunction",
    "PartialDecoder",
    "Schema",
    "StrictForm",
    "SynthesizedFunction",
    "ToolCodec",
    "answer_codec",
    "b64",
    "decode",
    "dumps",
    "encode",
    "encode_result",
    "fmt_dict",
    "fmt_list",
    "fmt_records",
    "format_as_content_blocks",
    "json_schema",
    "json_schema_for",
    "normal_calls",
    "register",
    "render_section",
    "runs_code",
    "schema_for",
    "signature_text",
    "strict_form",
    "strict_response_format",
    "to_content_blocks",
    "to_jsonable",
    "tool_codec",
    "type_adapter",
]
