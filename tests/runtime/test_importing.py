"""What importing the runtime checks, and what it does not load."""

import subprocess
import sys
import textwrap


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)


def test_import_is_refused_while_a_handler_of_the_library_is_installed() -> None:
    done = run(
        """
        from effectful.ops.semantics import handler
        from effectful.ops.types import Operation

        @Operation.define
        def one() -> int:
            return 1

        with handler({one: lambda: 2}):
            import effectful_agents.runtime
        """
    )
    assert done.returncode == 1
    assert "ConfigurationError: `effectful_agents` was imported inside an installed effectful `handler`" in done.stderr


def test_another_version_of_effectful_is_refused() -> None:
    done = run(
        """
        import os, tempfile
        import effectful
        other = tempfile.mkdtemp()
        os.mkdir(os.path.join(other, "effectful-0.5.1.dist-info"))
        effectful.__path__.insert(0, os.path.join(other, "effectful"))
        import effectful_agents.runtime
        """
    )
    assert done.returncode == 1
    assert "ConfigurationError: `effectful_agents` was written for effectful 0.4.x and found 0.5.1" in done.stderr


def test_what_was_imported_from_the_library_before_works() -> None:
    done = run(
        """
        from effectful.ops.semantics import fwd, handler
        from effectful.ops.types import Operation

        @Operation.define
        def one() -> int:
            return 1

        import effectful_agents.runtime as runtime

        with runtime.handler({one: lambda: fwd() + 1}), handler({one: lambda: fwd() * 10}):
            print(one())
        """
    )
    assert done.stdout == "20\n", done.stderr


def test_importing_loads_nothing_slow() -> None:
    done = run(
        """
        import sys
        import effectful_agents.runtime
        print(sorted({"asyncio", "tenacity", "rich", "httpx", "litellm"} & set(sys.modules)))
        """
    )
    assert done.stdout == "[]\n", done.stderr
