"""The command `manifest`: how the stack of a script is put together, and who decides in it."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from effectful_agents.errors import ConfigurationError
from effectful_agents.handlers.policy import CompositionManifest, composition_manifest
from effectful_agents.handlers.policy.manifest_text import text_of
from effectful_agents.harness.call import find, names_of_skills
from effectful_agents.harness.launcher import one_line
from effectful_agents.harness.loading import NotLoaded, looked_at, opened
from effectful_agents.harness.options import Look, parse_look
from effectful_agents.harness.output import print_text
from effectful_agents.harness.stack import Harness
from effectful_agents.runtime import Interpretation, Layers
from effectful_agents.types import Skill

__all__ = ["handler_named", "main"]


def main(arguments: Sequence[str], *, program: str = "effectful-agents manifest") -> int:
    """Describe a stack; no model is asked, and the process is the script's afterwards.

    Args:
        arguments: Those of the command line, without the program's name and the command.
        program: How the program is called, for its help.

    Returns:
        The exit code: 1 where the script fails while it is loaded, 2 where something has to be written otherwise.
    """
    look = parse_look(arguments, program)
    try:
        manifest = looked_at(lambda: _described(look), as_json=look.as_json)
    except NotLoaded as ended:
        return ended.code
    if look.as_json:
        text = manifest.to_json(indent=2)
        print_text(text, json.dumps(json.loads(text), indent=2))
    else:
        print_text("\n".join([text_of(manifest, unseen=_UNSEEN), "", *_explained(manifest)]))
    return 0


def _described(look: Look) -> CompositionManifest:
    standard, module = opened(look.script, look.options)
    stack: Interpretation = standard
    for given in [handler_named(module, name) for name in look.handlers]:
        stack = given if isinstance(given, Harness) else Layers(stack, given)
    return composition_manifest(*_skills(module, look.skill), stack=stack)


def _skills(module: types.ModuleType, name: str) -> Iterator[Skill[..., Any]]:
    """The skill of this name, or all of the script."""
    if name:
        yield find(module, name)
        return
    for each in names_of_skills(module.__dict__):
        try:
            yield find(module, each)
        except ConfigurationError as error:
            print(f"`{each}` is left out: {one_line(error)}", file=sys.stderr)


def handler_named(module: types.ModuleType, name: str) -> Interpretation:
    """The handler that a script makes at its top level under a name.

    Raises:
        ConfigurationError: There is none.
    """
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Mapping) and not isinstance(found, type):
        return found
    raise ConfigurationError(
        f"`{name}` is no handler of the script; `--with` takes the name of one that it makes at its top level, such as "
        f"`{name} = harness(…)`."
    )


_UNSEEN = "what the script installs itself, unless `--with NAME` names it,"

_CODE: Mapping[str, str] = {
    "builtin": "`--eval-provider restricted` keeps code of the model from files, network and processes; `none` runs "
    "none of it.",
    "restricted": "`--eval-provider none` runs no code of the model; `builtin` runs it with nothing to hold it back.",
    "none": "`--eval-provider restricted` would run code of the model, held back; `builtin` with nothing to hold it "
    "back.",
}


def _explained(manifest: CompositionManifest) -> Iterator[str]:
    """What the options have to do with it."""
    if manifest.code in _CODE:
        yield _CODE[manifest.code]
    if manifest.enforcement.startswith("nothing"):
        yield (
            "No option has anybody decide: a program does, with a handler of `effectful_agents.handlers.policy`. Where "
            "it installs none, a tool that is offered is called whenever the model asks for it."
        )
