"""The operations of a session: code that runs piece by piece in one namespace, which lasts as long as a call."""

from __future__ import annotations

from types import CodeType
from typing import Any

from effectful_agents.errors import MissingHandlerError
from effectful_agents.operations.history import CompactionScope
from effectful_agents.runtime import Operation
from effectful_agents.types import Risk, Tool

__all__ = ["exec_code", "repl_env", "repl_history"]

_SESSION = "Install `StatefulReplSynthesizer()` of `effectful_agents.handlers.synthesis`, and an executor."


# A tool, whose docstring the model reads. For programmers: performed with a code object, it gives what the code printed
# and then what it wrote to the error output, and raises whatever the code raises. What code can do is for the executor
# to say, so it is taken for the worst.
@Tool.define(risk=Risk.DESTRUCTIVE, rerun=True)
def exec_code(code: CodeType, compact: CompactionScope = CompactionScope.NONE) -> str:
    """Run Python code in the session of this call, and get what it printed.

    All calls of this tool within one call of the skill share one namespace: imports, definitions and assignments stay
    from one to the next. It begins with the arguments of the skill and with the names that the code around it sees.
    Read and rebind them as if your code stood in the body of the function that you answer for; there is no need to
    import again what is there, or to type again what the request holds. The session ends with your answer. What is to
    last belongs on `self`, or on another object that the program owns.

    The result is what the code wrote to the standard output and then what it wrote to the error output. The value of an
    expression alone is not shown: `print` what you want to see.

    When the code raises, the call fails and you get the traceback. Everything that was bound before stays bound, so
    mend the code and go on. What it had printed is not returned: print it again.

    Args:
        code: The source text.
        compact: What of the conversation to drop when the code has run without an error: `none`, nothing; `turn`, your
            earlier turns in this call; `conversation`, the earlier calls as well. The request, and this turn with your
            message, code and output, stay. Note in them whatever you need later.
    """
    raise MissingHandlerError("exec_code", _SESSION)


exec_code.runs_code = True


@Operation.define
def repl_env() -> dict[str, Any]:
    """The names of the session and their values, in a dictionary of its own."""
    raise MissingHandlerError("repl_env", _SESSION)


@Operation.define
def repl_history() -> list[str]:
    """The sources of the pieces that ran without an error, in their order; none where there is no session."""
    return []
