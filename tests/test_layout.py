"""The shape of the repository: the `handlers` link, which way imports go, what is public, what loads when."""

import ast
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import effectful_agents

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "effectful_agents"
SCRIPTS = Path(sys.executable).parent

LINES_OF_A_FILE = 500
SLOW_OR_OPTIONAL = [
    *("asyncio", "httpx", "langfuse", "litellm", "mypy", "opentelemetry"),
    *("rich", "tenacity", "xllamacpp", "yaml"),
]
PLANTED = '''"""A file with a fault for each tool.

>>> 1 + 1
3
"""

import handlers

number: int = "text"
'''


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def tracked_files() -> list[Path]:
    """The files of the repository, those not committed yet included."""
    done = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    if done.returncode:
        pytest.skip("not a git repository")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def public_packages() -> list[str]:
    """Every package and module of ours that says what is public in it, by its name."""
    found = pkgutil.walk_packages(effectful_agents.__path__, "effectful_agents.")
    return ["effectful_agents", *(each.name for each in found if each.ispkg)]


@pytest.fixture(scope="module")
def faulty_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and its configuration, with a fault among the handlers."""
    copy = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, copy / "effectful_agents", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    shutil.copy(ROOT / "README.md", copy)
    (copy / "tests").mkdir()
    (copy / "handlers").symlink_to("effectful_agents/handlers")
    (copy / "effectful_agents/handlers/planted.py").write_text(PLANTED)
    return copy


# The link


def test_handlers_is_a_relative_link_to_the_families() -> None:
    link = ROOT / "handlers"
    assert link.is_symlink()
    assert os.readlink(link) == "effectful_agents/handlers"
    assert link.resolve() == (PACKAGE / "handlers").resolve()


def test_nothing_imports_the_link() -> None:
    importers = {
        path.relative_to(ROOT)
        for path in tracked_files()
        if path.suffix == ".py"
        for name in imported_names(path)
        if name.split(".")[0] == "handlers"
    }
    assert not importers


def test_the_linter_bans_the_link_and_reads_the_handlers(faulty_copy: Path) -> None:
    done = run(SCRIPTS / "ruff", "check", "--no-cache", "--output-format=concise", cwd=faulty_copy)
    (finding,) = re.findall(r"^(\S+?):.*TID251", done.stdout, re.MULTILINE)
    assert Path(finding) == Path("effectful_agents/handlers/planted.py")


def test_the_type_checker_reads_the_handlers_once(faulty_copy: Path) -> None:
    done = run(SCRIPTS / "ty", "check", f"--python={sys.prefix}", "--output-format=concise", cwd=faulty_copy)
    found = re.findall(r"^(\S+planted\.py):.*invalid-assignment", done.stdout, re.MULTILINE)
    assert found == ["effectful_agents/handlers/planted.py"]


def test_pytest_collects_the_handlers_once(faulty_copy: Path) -> None:
    (faulty_copy / "effectful_agents/handlers/planted.py").write_text(PLANTED.replace("import handlers\n", ""))
    done = run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", cwd=faulty_copy)
    found = [line for line in done.stdout.splitlines() if "planted" in line]
    assert found == ["effectful_agents/handlers/planted.py::effectful_agents.handlers.planted"]


# Imports


def test_imports_follow_the_layers() -> None:
    done = run(SCRIPTS / "lint-imports", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_runtime_touches_private_names_of_effectful() -> None:
    importers = {
        path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for path in PACKAGE.rglob("*.py")
        for name in imported_names(path)
        if name.startswith(("effectful.internals", "effectful.handlers"))
    }
    assert importers <= {"runtime"}


@pytest.mark.parametrize("module", ["effectful_agents", "effectful_agents.harness", "effectful_agents.testing"])
def test_what_is_slow_or_optional_loads_at_its_first_use(module: str) -> None:
    loaded = python(f"import sys, {module}; print(*(name for name in {SLOW_OR_OPTIONAL} if name in sys.modules))")
    assert loaded == ""


def test_the_package_of_the_harness_loads_no_family_but_the_one_with_run() -> None:
    names = python("import sys, effectful_agents.harness; print(*sys.modules)").split()
    families = {name.split(".")[2] for name in names if name.startswith("effectful_agents.handlers.")}
    assert families <= {"loop"}


@pytest.mark.parametrize(
    "imports",
    [
        "from effectful_agents import harness",
        "import effectful_agents.harness; from effectful_agents import harness",
        "from effectful_agents import harness; import effectful_agents.harness",
        "from effectful_agents.harness import harness",
        "import effectful_agents.harness.commands; from effectful_agents import harness",
    ],
)
def test_harness_can_be_called_in_whatever_order_it_is_imported(imports: str) -> None:
    code = f"{imports}; import effectful_agents; print(callable(harness), harness is effectful_agents.harness)"
    assert python(code) == "True True"


def test_the_package_of_the_harness_can_be_imported_from() -> None:
    code = "import effectful_agents; from effectful_agents.harness import commands; print(commands.__name__)"
    assert python(code) == "effectful_agents.harness.commands"


def test_the_harness_runs_as_a_program() -> None:
    done = run(sys.executable, "-W", "error", "-m", "effectful_agents.harness", "--help")
    assert done.returncode == 0, done.stderr
    assert "--model" in done.stdout
    assert done.stderr == ""


# Public names


@pytest.mark.parametrize("name", public_packages())
def test_public_names_are_sorted_and_exist(name: str) -> None:
    module = sys.modules.get(name) or importlib.import_module(name)
    public = getattr(module, "__all__", [])
    assert list(public) == sorted(public)
    assert not [each for each in public if not hasattr(module, each)]


@pytest.mark.parametrize("name", public_packages())
def test_what_a_package_offers_is_public(name: str) -> None:
    module = importlib.import_module(name)
    offered = {
        each
        for each, value in vars(module).items()
        if not each.startswith("_") and not isinstance(value, types.ModuleType) and not is_from_elsewhere(value)
    }
    tools = {each for each in offered if isinstance(getattr(module, each), effectful_agents.Tool)}
    public = set(getattr(module, "__all__", offered))
    assert offered - tools <= public
    # A model is offered the tools that a module sees: `import *` is to bring none.
    assert not tools & public


def is_from_elsewhere(value: object) -> bool:
    return not str(getattr(value, "__module__", "")).startswith("effectful_agents.")


def test_the_front_holds_what_a_user_needs() -> None:
    assert set(effectful_agents.__all__) >= {
        *("Agent", "Encodable", "NotHandled", "ObjectInterpretation", "Risk", "Skill", "Tool"),
        *("acall", "coproduct", "fwd", "handler", "harness", "implements", "run"),
    }


# Files


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert not {path.relative_to(ROOT): lines for path, lines in lengths.items() if lines >= LINES_OF_A_FILE}


def test_no_file_names_a_host_of_a_package_registry() -> None:
    # Written in parts, so that this file does not name them either.
    hosts = [f"{name}.{top}" for name, top in [("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org")]]
    naming = {
        path.relative_to(ROOT) for path in tracked_files() for host in hosts if host.encode() in path.read_bytes()
    }
    assert not naming


def test_the_types_are_published() -> None:
    assert (PACKAGE / "py.typed").is_file()
