"""What looks like a secret, or is named like one, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.messages.sensitive import hidden, is_secret_name, without_secrets


def _words(text: str) -> list[str]:
    return text.split()


SECRETS = _words("""
secret_key SECRET_KEY secrets secret_value client_secret pwd pass db_pass passwords password1 DB_PASSWORD passphrase
auth authentication authorization_header X-Auth-Token access_token_v2 accessToken tokens refresh_tokens session_id
sessionId PHPSESSID signing_key encryption_key api_keys apiKey APIKey AccountKey private_key jwt pin card_pin otp dsn
connection_string conn_str cookies Cookie credentials sig X-Amz-Signature
""")
OTHERS = _words("""
max_tokens prompt_tokens tokenizer next_page_token continuation_token cost_per_token stop_token_ids author authors
authority authentic pinned spinning passenger compass passed secretary primary_key public_key sort_key prompt_cache_key
key monkey session city design signal
""")


@pytest.mark.parametrize("name", SECRETS)
def test_names_of_secrets(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OTHERS)
def test_names_of_other_things(name):
    assert not is_secret_name(name)


S = "hunter2Zq9"
NAMED = {
    f"password:    {S}": "password:    [secret]",
    f"Authorization: Token {S}": "Authorization: [secret]",
    f'Authorization: Digest username="ann", response="{S}"': "Authorization: [secret]",
    f'curl -H "Authorization: ApiKey {S}" https://x.org': 'curl -H "Authorization: [secret]" https://x.org',
    f"Cookie: theme=dark; session={S}": "Cookie: [secret]",
    f'{{"body": "{{\\"password\\": \\"{S}\\", \\"a\\": 1}}"}}': '{"body": "{\\"password\\": [secret], \\"a\\": 1}"}',
    f"login --password {S} --city Oslo": "login --password [secret] --city Oslo",
    f"curl -u ann:{S} https://x.org": "curl -u [secret] https://x.org",
    f"password='''{S} {S}'''": "password=[secret]",
    f"password=ab;{S}": "password=[secret]",
    f"password => {S}": "password => [secret]",
    f"API key: {S}": "API key: [secret]",
    f"<password>{S}</password>": "<password>[secret]</password>",
    f"| password | {S} |": "| password | [secret] |",
    f"{{'password': ['{S}', '{S}'], 'city': 'Oslo'}}": "{'password': [secret], 'city': 'Oslo'}",
    f"('x-api-key', '{S}')": "('x-api-key', [secret])",
    f"{{'name': 'password', 'value': '{S}'}}": "{'name': 'password', 'value': [secret]}",
    f"postgres://u:p@{S}@db": "postgres://[secret]@db",
    f"postgres://u:pa/{S}@db": "postgres://[secret]@db",
    f"https://{S}@github.com/x.git": "https://[secret]@github.com/x.git",
    f"AccountKey={S}==": "AccountKey=[secret]",
    f"https://x.blob/y?sig={S}&a=1": "https://x.blob/y?sig=[secret]&a=1",
    f"pwd={S}": "pwd=[secret]",
    f"export SECRET_KEY={S}": "export SECRET_KEY=[secret]",
    f"password={S!r}, city='Oslo'": "password=[secret], city='Oslo'",
    f'password="{S} cut off': "password=[secret]",
}


@pytest.mark.parametrize(("text", "expected"), NAMED.items(), ids=[str(number) for number in range(len(NAMED))])
def test_what_stands_behind_a_name_is_hidden(text, expected):
    assert without_secrets(text) == expected
    assert hidden(expected) == expected


TOKENS = {
    "stripe": "sk_live_" + S * 3,
    "stripe webhook": "whsec_" + S * 3,
    "hugging face": "hf_" + S * 4,
    "google oauth": "ya29." + S * 5,
    "google client": "GOCSPX-" + S * 3,
    "aws sts": "ASIAIOSFODNN7EXAMPLE",
    "npm": "npm_" + S * 4,
    "pypi": "pypi-" + S * 5,
    "groq": "gsk_" + S * 5,
    "xai": "xai-" + S * 5,
    "sendgrid": f"SG.{S * 2}.{S * 4}",
    "gitlab": "glptt-" + S * 3,
    "slack": "xapp-1-" + S * 3,
    "slack hook": "hooks.slack.com/services/T0/B0/" + S * 2,
    "discord hook": "discord.com/api/webhooks/123456789012345678/" + S * 4,
    "capitals": "SK-" + S * 3,
    "jwt": f"eyJ{S}.eyJ{S}.{S}",
    "telegram": "123456789:AA" + "x1-" * 11,
    "vault": "hvs." + S * 3,
    "pgp": f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{S}\n-----END PGP PRIVATE KEY BLOCK-----",
    "cut off": f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{S}",
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_keys_and_tokens_of_usual_forms_are_hidden(token):
    assert without_secrets(f"Take {token}") == "Take [secret]"


def test_a_key_is_found_within_a_name_and_in_an_address():
    assert without_secrets(f"my_sk-{S * 2}") == "my_[secret]"
    assert without_secrets(f"https://example.org/v1?key={S * 2}&a=1") == "https://example.org/v1?key=[secret]&a=1"


@pytest.mark.parametrize(
    "text",
    [
        "at most 128000 tokens, see max_tokens=9",
        "https://example.org:8080/@ann?a=b",
        "ssh://git@github.com/x.git",
        "author: Ann, city: Oslo",
        "The token is not known, the password neither.",
        "next_page_token=abc",
        "tokens: 128000",
        "a -> b, c => d, e := f",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert without_secrets(text) == text


PIECES = st.sampled_from(
    [
        *("password", "token", "Cookie", "Authorization", "api key", "--password", "a", "b1", S, "4111 1111 1111 1111"),
        *(":", "=", " ", ",", ";", "|", '"', "'", "\\", "\n", "(", "[", "]", "{", "}", "<", ">", "/", "@", "://", "&"),
        *(
            "[secret]",
            "[TOKEN]",
            "bearer ",
            "sk-abcdefghijklmnop1234",
            "ann@example.org",
            "-----BEGIN PRIVATE KEY-----",
        ),
        *("+49 170 1234567", "1", "value", "'''", "-u ", "https"),
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=60))
def test_what_is_hidden_stays_as_it_is(text):
    for hide in (hidden, without_secrets):
        once = hide(text)
        assert hide(once) == once


@given(st.sampled_from(["password", "api_key", "Authorization"]), st.sampled_from([":", "=", ": ", ' = "', ":\t'"]))
def test_no_value_is_left(name, separator):
    assert S not in hidden(f"before {name}{separator}{S}")


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "password",
            "password=",
            'password: "',
            'password=\\"',
            "password='''",
            "password=[",
            "password=" + " " * 150,
        ),
        *(
            "\\",
            "'",
            '"\\',
            "a=",
            "a: ",
            '"a", ',
            "api ",
            "<a>",
            "<password>",
            "Authorization: ",
            'Authorization: a,b="',
        ),
        *("Cookie: a=b;", "://", "://a:", "http://", "--password ", "-u a:", "token [", " ", "SG.", "1:AA", "eyJ"),
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    ],
)
def test_long_texts_take_no_time_that_grows_faster(unit):
    assert isinstance(hidden(unit * (200_000 // len(unit))), str)
