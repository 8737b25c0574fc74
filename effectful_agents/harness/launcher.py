"""Running a script in the standard stack, as if it ran by itself."""

from __future__ import annotations

import builtins
import contextlib
import logging
import os
import shlex
import sys
import types
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effectful_agents.errors import (
    ConfigurationError,
    DefinitionError,
    EncodingError,
    HistoryError,
    JournalError,
    LimitExceeded,
    ProviderError,
    ReplayDivergence,
    StorageError,
    Suspended,
    UncertainEffect,
)
from effectful_agents.harness import harness
from effectful_agents.harness.options import Launch, parse
from effectful_agents.messages.text import printable_text
from effectful_agents.runtime import handler

if TYPE_CHECKING:
    from effectful_agents.harness.stack import Harness

__all__ = ["become_main", "fail", "main", "one_line", "read_script", "run", "show_traceback", "stack_of"]

DEFAULT_MODEL = "local/smollm2"
MODEL_VARIABLE = "EFFECTFUL_AGENTS_MODEL"


def main(arguments: Sequence[str] | None = None, *, program: str = "python -m effectful_agents.harness") -> int:
    """Run a script in the standard stack; the process is the script's afterwards, as its `__main__`.

    Args:
        arguments: Those of the command line, without the program's name; None takes the process's own.
        program: How the program is called, for its help.

    Returns:
        The exit code: that of the script, 1 where it failed, 2 where the command line is wrong, 3 where it waits for
        somebody's answer.
    """
    return run(parse(sys.argv[1:] if arguments is None else arguments, program))


def run(launch: Launch) -> int:
    """Run what a command line asks for; the exit code is that of `main`."""
    try:
        source = read_script(launch.script)
        stack = stack_of(launch.options)
    except (ConfigurationError, JournalError, StorageError) as error:
        return fail(str(error), code=2)
    module = become_main(launch.script, launch.arguments)
    path = str(module.__file__)
    try:
        # What the script raises goes through the stack: a journal writes down how its run ended.
        with contextlib.ExitStack() as installed:
            installed.enter_context(stack)
            if launch.log is not None:
                installed.enter_context(_log(launch.log))
            # Whoever renders the conversation shows more than the progress, on the same screen; so do lines of a log.
            elif sys.stderr.isatty() and not launch.options.get("render"):
                installed.enter_context(_progress())
            _execute(source, module)
    except SystemExit as exit_:
        return _exit_code(exit_)
    except Suspended as signal:
        return _waits(signal, launch)
    except KeyboardInterrupt:
        return fail("interrupted.", code=130)
    except (
        *(ConfigurationError, ProviderError, LimitExceeded, StorageError),
        *(JournalError, ReplayDivergence, UncertainEffect),
    ) as error:
        if isinstance(error, DefinitionError | EncodingError | HistoryError):
            return show_traceback(error, path)
        return fail(one_line(error), code=1)
    except BaseException as error:
        return show_traceback(error, path)
    return 0


def _waits(signal: Suspended, launch: Launch) -> int:
    """Say what a run waits for, and how it goes on; the exit code is 3."""
    print(f"waiting: {one_line(signal)}", file=sys.stderr)
    question, journal = signal.question, launch.options.get("journal")
    if question is not None and journal is not None:
        words = ["resume", question.run_id, launch.script, "--database", os.fsdecode(journal), *launch.arguments]
        print(f"then: {shlex.join(['effectful-agents', *words])}", file=sys.stderr)
    return 3


def read_script(script: str) -> bytes:
    """The source of a script.

    Raises:
        ConfigurationError: There is no such file, or it cannot be read.
    """
    path = Path(script)
    if not path.is_file():
        raise ConfigurationError(f"there is no script `{script}`.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"the script `{script}` cannot be read: {error.strerror}.") from error


def stack_of(given: Mapping[str, Any]) -> Harness:
    """The standard stack for the options of a command line.

    Raises:
        ConfigurationError: An option has a value that it cannot have.
        StorageError: A file that an option names cannot be written.
    """
    options: dict[str, Any] = {**given, "model": given.get("model") or _default_model()}
    return harness(**options)


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


@contextlib.contextmanager
def _log(least: str) -> Generator[None]:
    from effectful_agents.handlers.observability.steps_log import StepLogger  # noqa: PLC0415 - a family

    steps = StepLogger()
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    # Not by the root: the script may set that up for itself, and would say everything twice.
    level, propagates = steps.logger.level, steps.logger.propagate
    steps.logger.addHandler(shown)
    steps.logger.setLevel(least.upper())
    steps.logger.propagate = False
    try:
        with handler(steps):
            yield
    finally:
        steps.logger.removeHandler(shown)
        steps.logger.setLevel(level)
        steps.logger.propagate = propagates


def become_main(script: str, arguments: Sequence[str]) -> types.ModuleType:
    """Make the process that of a script: with its `__main__`, its words, and its folder first on the path.

    Returns:
        The module, empty so far.
    """
    module = types.ModuleType("__main__")
    # Absolute, as Python has it: the script may go to another folder, and its source is still found.
    module.__file__ = os.path.abspath(script)
    module.__dict__["__builtins__"] = builtins
    # For good: threads, and what is registered for the exit of the process, still have to find the script there.
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    # The first place is that of the launcher, unless Python was told to leave it out.
    sys.path[: 0 if sys.flags.safe_path else 1] = [str(Path(script).resolve().parent)]
    return module


def _execute(source: bytes, module: types.ModuleType) -> None:
    """Execute the script as `__main__`."""
    # Not to inherit the `from __future__` imports of this module.
    code = compile(source, str(module.__file__), "exec", dont_inherit=True)
    try:
        exec(code, module.__dict__)
    except SystemExit as exit_:
        if exit_.code not in (None, 0):
            raise


def _exit_code(exit_: SystemExit) -> int:
    if exit_.code is None or isinstance(exit_.code, int):
        return exit_.code or 0
    print(exit_.code, file=sys.stderr)
    return 1


def show_traceback(error: BaseException, script: str) -> int:
    """Show an exception as Python does, from the script's own first frame on; the exit code is 1."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    # The hook, since the script may have set one. Python's own reads the traceback that the exception has.
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    return 1


def one_line(error: BaseException) -> str:
    """The text of an error in one line, for a terminal: a model may have written parts of it."""
    return printable_text(" ".join(str(error).split())) or type(error).__name__


def fail(message: str, *, code: int) -> int:
    """Say what is wrong, in one line; the exit code is the one that is given."""
    print(f"error: {message}", file=sys.stderr)
    return code
