"""Running a script in the standard stack, as if it ran by itself."""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from effectful_agents.errors import (
    AgentsError,
    ConfigurationError,
    DefinitionError,
    EncodingError,
    HistoryError,
    LimitExceeded,
    ProviderError,
)
from effectful_agents.harness import harness
from effectful_agents.harness.options import Launch, parse
from effectful_agents.runtime import handler

__all__ = ["main"]

DEFAULT_MODEL = "local/smollm2"
MODEL_VARIABLE = "EFFECTFUL_AGENTS_MODEL"


def main(arguments: Sequence[str] | None = None, *, program: str = "python -m effectful_agents.harness") -> int:
    """Run a script in the standard stack; the process is the script's afterwards, as its `__main__`.

    Args:
        arguments: Those of the command line, without the program's name; None takes the process's own.
        program: How the program is called, for its help.

    Returns:
        The exit code: that of the script, 1 where it failed, 2 where the command line is wrong.
    """
    launch = parse(sys.argv[1:] if arguments is None else arguments, program)
    script = Path(launch.script)
    if not script.is_file():
        return _fail(f"there is no script `{launch.script}`.", code=2)
    try:
        source = script.read_bytes()
    except OSError as error:
        return _fail(f"the script `{launch.script}` cannot be read: {error.strerror}.", code=2)
    try:
        options: dict[str, Any] = {**launch.options, "model": launch.options.get("model") or _default_model()}
        stack = harness(**options)
    except ConfigurationError as error:
        return _fail(str(error), code=2)
    with contextlib.ExitStack() as installed:
        installed.enter_context(stack)
        # Whoever renders the conversation shows more than the progress, on the same screen.
        if sys.stderr.isatty() and not launch.options.get("render"):
            installed.enter_context(_progress())
        return _run(script, source, launch)


def _default_model() -> str:
    """The model of a command line that names none."""
    chosen = os.environ.get(MODEL_VARIABLE)
    if not chosen:
        note = (
            f"using {DEFAULT_MODEL}, a small model inside this process; --model NAME or {MODEL_VARIABLE} takes another."
        )
        print(note, file=sys.stderr)
    return chosen or DEFAULT_MODEL


def _progress() -> Any:
    from effectful_agents.handlers.observability.progress import ProgressDisplay  # noqa: PLC0415 - loads rich

    return handler(ProgressDisplay())


def _run(script: Path, source: bytes, launch: Launch) -> int:
    """Execute the script as `__main__`, with its folder first on the path and its own arguments."""
    # Absolute, as Python has it: the script may go to another folder, and its source is still found.
    path = os.path.abspath(script)
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__dict__["__builtins__"] = builtins
    # For good: threads, and what is registered for the exit of the process, still have to find the script there.
    sys.modules["__main__"] = module
    sys.argv = [launch.script, *launch.arguments]
    # The first place is that of the launcher, unless Python was told to leave it out.
    sys.path[: 0 if sys.flags.safe_path else 1] = [str(script.resolve().parent)]
    try:
        # Not to inherit the `from __future__` imports of this module.
        code = compile(source, path, "exec", dont_inherit=True)
        exec(code, module.__dict__)
    except SystemExit as exit_:
        return _exit_code(exit_)
    except KeyboardInterrupt:
        return _fail("interrupted.", code=130)
    except (ConfigurationError, ProviderError, LimitExceeded) as error:
        if isinstance(error, DefinitionError | EncodingError | HistoryError):
            return _show_traceback(error, path)
        return _fail(_one_line(error), code=1)
    except BaseException as error:
        return _show_traceback(error, path)
    return 0


def _exit_code(exit_: SystemExit) -> int:
    if exit_.code is None or isinstance(exit_.code, int):
        return exit_.code or 0
    print(exit_.code, file=sys.stderr)
    return 1


def _show_traceback(error: BaseException, script: str) -> int:
    """Show an exception as Python does, from the script's own first frame on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    # The hook, since the script may have set one. Python's own reads the traceback that the exception has.
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    return 1


def _one_line(error: AgentsError) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _fail(message: str, *, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code
