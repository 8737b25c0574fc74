"""How Sphinx builds the documentation: `nox -s docs`."""

from importlib.metadata import version as installed_version

# Before autodoc does: it pretends to be a type checker meanwhile, and langfuse cannot be loaded so.
import langfuse  # noqa: F401
from sphinx.application import Sphinx

project = "effectful-agents"
author = "the effectful-agents maintainers"
release = version = installed_version(project)

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "alabaster"

# Docstrings put code in single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3


def literal_blocks(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Mark what a docstring indents after an empty line as code, which reStructuredText wants told by `::`.

    Only docstrings of modules: elsewhere an indented block may belong to `Args` and its like.
    """
    if what != "module":
        return
    for number, line in enumerate(lines):
        starts = line.startswith("    ") and number > 0 and not lines[number - 1].strip()
        before = next((each for each in reversed(lines[:number]) if each.strip()), "")
        if starts and before and not before.startswith(" ") and not before.endswith("::"):
            lines[number - 1 : number] = ["", "::", ""]
            return literal_blocks(app, what, name, obj, options, lines)


def setup(app: Sphinx) -> None:
    """Connect what this file adds."""
    app.connect("autodoc-process-docstring", literal_blocks)
