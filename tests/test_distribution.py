"""What is in the two distributions, and that the wheel alone is enough to import the package."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "effectful_agents"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--out-dir", folder, ROOT)
    return folder


def uv(*arguments: str | Path) -> None:
    done = subprocess.run(
        ["uv", *map(str, arguments)],
        # A session of nox, or `uv run`, would lend its environment.
        env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def package_files() -> set[str]:
    places = (PACKAGE, ROOT / "pytest_effectful_agents")
    files = (
        path for place in places for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_the_wheel_holds_the_package_once(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == package_files()
    assert "effectful_agents/py.typed" in names


def test_the_source_distribution_holds_the_package_and_what_describes_it(built: Path) -> None:
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        members = archive.getmembers()
    names = {member.name.partition("/")[2] for member in members}
    described = {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO"}
    # hatchling adds the list of files that git ignores.
    assert names - {".gitignore"} == package_files() | described
    assert not [member.name for member in members if member.issym()]


def test_the_wheel_alone_can_be_imported_and_launched(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    uv("venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    scripts = tmp_path / "venv" / "bin"
    uv("pip", "install", "--quiet", "--python", scripts / "python", wheel)
    for command in (["python", "-c", "import effectful_agents"], ["effectful-agents", "--help"]):
        done = subprocess.run(
            [scripts / command[0], *command[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), command
