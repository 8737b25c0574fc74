"""The file of clients, and who a token belongs to."""

from __future__ import annotations

import json

import pytest

from effectful_agents.errors import ConfigurationError
from effectful_agents.harness.serving.gateway.clients import Client, Clients, new_token, read_clients, token_hash

HASH = token_hash("a token")


def written(tmp_path, text, name="clients.toml"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_a_file_in_toml_and_one_in_json_say_the_same(tmp_path):
    table = {"token_sha256": HASH, "requests_per_minute": 60, "budget_usd": 2.5, "models": ["m"], "approves": True}
    toml = "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())
    expected = [
        Client(name="ann", token_sha256=HASH, requests_per_minute=60, budget_usd=2.5, models=("m",), approves=True)
    ]
    assert list(read_clients(written(tmp_path, f"[clients.ann]\n{toml}\n"))) == expected
    text = json.dumps({"clients": {"ann": table}})
    assert list(read_clients(written(tmp_path, text, "clients.json"))) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a table for each client"),
        ("x = ", "no TOML"),
        ("[clients]", "a table for each client"),
        ("[clients.ann]", "has no `token_sha256`"),
        ("[clients.ann]\ntoken = 'x'", "has `token`; there can be token_sha256"),
        ("[clients.ann]\ntoken_sha256 = 'secret'", "not the token itself"),
        (f"[clients.ann]\ntoken_sha256 = '{HASH}'\nrequests_per_minute = -1", "is a whole number"),
        (f"[clients.ann]\ntoken_sha256 = '{HASH}'\nrequests_per_minute = true", "is a whole number"),
        (f"[clients.ann]\ntoken_sha256 = '{HASH}'\nbudget_usd = inf", "number of US dollars"),
        (f"[clients.ann]\ntoken_sha256 = '{HASH}'\nmodels = 'm'", "list of names"),
        (f"[clients.ann]\ntoken_sha256 = '{HASH}'\napproves = 1", "true or false"),
        (f"[clients.'a b']\ntoken_sha256 = '{HASH}'", "has a name"),
        (f"[clients.a]\ntoken_sha256 = '{HASH}'\n[clients.b]\ntoken_sha256 = '{HASH}'", "the same token"),
        ("[clients]\nann = 1", "is no table"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, said):
    with pytest.raises(ConfigurationError, match=said) as caught:
        read_clients(written(tmp_path, text))
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_clients(str(tmp_path / "absent.toml"))


def test_a_token_is_that_of_one_client():
    tokens = [new_token() for _ in range(3)]
    clients = Clients([Client(name=str(number), token_sha256=token_hash(one)) for number, one in enumerate(tokens)])
    found = [clients.of_token(one) for one in tokens]
    assert [client.name for client in found if client] == ["0", "1", "2"]
    assert clients.of_token("") is clients.of_token(tokens[0][:-1]) is clients.of_token("\ud800") is None
    assert len(set(tokens)) == 3
