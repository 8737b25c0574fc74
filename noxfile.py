"""One command a purpose: `uv run nox -s NAME`. `uv run nox -l` lists them, `uv run nox` runs them all."""

import nox

nox.options.default_venv_backend = "uv"

PYTHONS = ["3.12", "3.13"]


def install(session: nox.Session) -> None:
    """Put the package, editable, and the development group into the session's environment."""
    environment = session.virtualenv.location
    session.run_install("uv", "sync", "--quiet", f"--python={environment}", env={"UV_PROJECT_ENVIRONMENT": environment})


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests and doctests; arguments after `--` go to pytest, as in `nox -s tests-3.12 -- -m slow`."""
    install(session)
    session.run("pytest", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Run all tests, the slow ones too, and report the branches that none of them took."""
    install(session)
    session.run("pytest", "-m", "", "--cov", "--cov-report=term-missing", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the style, the format and which way imports go."""
    install(session)
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the package, and with ty, mypy and pyright what its users get to see of them."""
    install(session)
    session.run("ty", "check")
    session.run("pytest", "-m", "", "tests/typing")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build and run the Python blocks in it and in the README."""
    install(session)
    session.run("sphinx-build", "-W", "--keep-going", "-q", "docs", "docs/_build")
    session.run("pytest", "tests/test_docs.py")


@nox.session
def examples(session: nox.Session) -> None:
    """Run the programs of llm_examples, with recorded replies and on the model inside the process."""
    install(session)
    session.run("pytest", "-m", "", "tests/test_examples.py")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the speed of the loop; nothing is asserted."""
    install(session)
    session.run("pytest", "bench", *session.posargs)


@nox.session
def package(session: nox.Session) -> None:
    """Build both distributions, look into them, and install the wheel without the development group."""
    install(session)
    session.run("pytest", "-m", "", "tests/test_distribution.py")
