"""Checking the types in generated code with mypy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

from effectful_agents.errors import MissingDependencyError, TypeCheckerError
from effectful_agents.handlers.validation.installed import folder_of
from effectful_agents.handlers.validation.report import (
    CANARY,
    CANARY_MISSING,
    Finding,
    PassedChecks,
    import_paths,
    inside,
    path_of,
    raise_findings,
    region_of,
)
from effectful_agents.handlers.validation.second_look import certain
from effectful_agents.operations.code import type_check
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.runtime import fwd, implements

__all__ = ["MypyTypeChecker"]

_SECONDS = 300.0
_PREFIX = "effectful-agents-"
_START = "import sys; sys.path.append(sys.argv.pop(1)); from mypy.__main__ import console_entry; console_entry()"
_FLAGS = (
    "--output=json",
    "--no-error-summary",
    # Settings of the user's would make the same code pass in one folder and fail in another.
    "--config-file=",
    "--follow-imports=silent",
    "--check-untyped-defs",
    # It would be silent of a module of an installed package.
    "--no-silence-site-packages",
    # So that a file goes by the name under which the program imports it.
    "--namespace-packages",
    "--explicit-package-bases",
    "--disable-error-code=import-untyped",
)


class MypyTypeChecker(PromptInjectingInterpretation):
    """The types in Python that you write are checked by mypy before it runs. Code with an error is not run.

    You are then shown each error with its line and mypy's name for it, and you write the code again. That costs nothing
    but the turn, and an error that mypy sees would nearly always have come up in the run, so mend the code and do not
    silence mypy: behind a `typing.Any` or a `# type: ignore` the same mistake waits for the run. Annotate what you
    write with the types that the code around it declares.

    What was there before your code is not checked.
    """

    # It may stand anywhere in a stack, with any executor. What passes is forwarded, so that another checker outside of
    # it is asked as well. A check takes a third of a second, and several seconds the first time, where `TyTypeChecker`
    # takes milliseconds; choose it where mypy's own analysis is wanted.
    #
    # Args:
    #     lenient_flags: Flags added with `lenient=True`: a name may be bound anew to another type, a function, class or
    #         import be defined again, and nothing need be returned.

    def __init__(
        self,
        lenient_flags: tuple[str, ...] = (
            "--allow-redefinition-new",
            "--local-partial-types",
            "--disable-error-code=no-redef",
            "--disable-error-code=return",
            "--disable-error-code=empty-body",
            "--disable-error-code=union-attr",
            "--disable-error-code=var-annotated",
        ),
    ) -> None:
        self.lenient_flags = lenient_flags
        self._passed = PassedChecks()
        # mypy keeps a cache of its own, and two checks at once would write over each other.
        self._lock = threading.Lock()
        self._cache: str | None = None

    @implements(type_check)
    def type_check(self, source: str, lo: int | None = None, hi: int | None = None, *, lenient: bool = False) -> None:
        flags = self.lenient_flags if lenient else ()
        key = self._passed.key(source, lo, hi, *flags)
        if key not in self._passed:
            first, last = region_of(source, lo, hi)

            def look(text: str) -> list[Finding]:
                with self._lock:
                    return inside(self._findings(text, flags), text, first, last)

            raise_findings(certain(look(source), source, first, last, lenient, look), source, first, last)
            self._passed.add(key)
        return fwd()

    def _findings(self, source: str, flags: tuple[str, ...]) -> Iterator[Finding]:
        installed = folder_of("mypy")
        if installed is None:
            raise MissingDependencyError('`MypyTypeChecker` needs mypy: pip install "effectful-agents[mypy]"')
        path = path_of(source)
        with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
            written = Path(folder, "generated.py")
            written.write_text(source + CANARY, encoding="utf-8", errors="surrogatepass", newline="\n")
            checked = ["--shadow-file", path, os.fspath(written), path] if path else [os.fspath(written)]
            run = self._run(installed, [*flags, *checked], folder, "lenient" if flags else "strict")
        read = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        if run.returncode not in (0, 1) and not any(one["severity"] == "error" for one in read):
            raise TypeCheckerError(f"mypy broke off with status {run.returncode}: {(run.stderr or run.stdout).strip()}")
        if not any(one["severity"] == "error" for one in read):
            raise TypeCheckerError(CANARY_MISSING.format("mypy"))
        for one in read:
            named = os.path.abspath(os.path.join(folder, one["file"]))
            if one["severity"] == "error" and named in (path, os.fspath(written)):
                column = max(one["column"], 0)
                message = "\n".join(filter(None, (one["message"], one.get("hint"))))
                yield Finding(one["line"], column, column, one["code"] or "error", message)

    def _run(self, installed: str, arguments: list[str], folder: str, kind: str) -> subprocess.CompletedProcess[str]:
        if self._cache is None:
            self._cache = tempfile.mkdtemp(prefix=_PREFIX)
            weakref.finalize(self, shutil.rmtree, self._cache, ignore_errors=True)
        # One for each choice of flags: mypy throws away what was found with others.
        cache = os.path.join(self._cache, kind)
        # Isolated: mypy is not to import a module of the user's in the place of one of its own or of the library.
        command = [sys.executable, "-I", "-X", "utf8", "-c", _START, installed, *_FLAGS, "--cache-dir", cache]
        command += ["--python-executable", sys.executable, *arguments]
        environment = {**os.environ, "MYPYPATH": os.pathsep.join(import_paths())}
        environment.pop("PYTHONPATH", None)  # mypy asks an interpreter of its own, which would see it
        try:
            return subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise TypeCheckerError(f"mypy gave no answer within {_SECONDS:g} seconds") from error
        except OSError as error:
            raise TypeCheckerError(f"mypy does not start: {error}") from error
