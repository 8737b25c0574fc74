"""Tokens: nobody makes one who does not have the key, and whatever is done to one, it is no token any more."""

from __future__ import annotations

import base64
import dataclasses
import hmac
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from effectful_agents import handler
from effectful_agents.errors import (
    ConfigurationError,
    OptionError,
    QuestionChanged,
    TokenExpired,
    TokenScopeMismatch,
    TokenTampered,
    TokenUnknown,
    TokenUsed,
)
from effectful_agents.handlers.policy import HmacSigner, HumanInteraction, MemoryLedger, Signer
from effectful_agents.handlers.policy.tokens import TokenClaims, read_token, unverified_claims, write_token
from effectful_agents.operations.approvals import PendingQuestion
from effectful_agents.operations.policy import Answer
from effectful_agents.operations.world import now
from effectful_agents.testing.ledgers import question

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
SIGNER = HmacSigner(KEY)
YES = Answer()

texts = st.text(max_size=40)
questions = st.builds(
    PendingQuestion,
    token_id=texts,
    run_id=texts,
    step_id=texts,
    digest=texts,
    scope=texts,
    text=texts,
    arguments=st.dictionaries(texts, texts, max_size=2),
    expires=st.floats(0, 1e12),
)


def people(ledger: Any = None, key: Any = KEY, **options: Any) -> HumanInteraction:
    return HumanInteraction(key, binding="ann", consumption=ledger or MemoryLedger(), **options)


def waiting(ledger: Any, interaction: HumanInteraction, **fields: Any) -> str:
    """The token of a question that waits."""
    return interaction.token_of(ledger.ask(question(**{"token_id": "t", "name": "send", **fields})))


def at(seconds: float) -> Any:
    return handler({now: lambda: seconds})


@given(asked=questions)
def test_a_token_says_what_its_question_is_and_is_the_same_each_time(asked):
    token = write_token(TokenClaims.of(asked), SIGNER)
    assert read_token(token, SIGNER) == TokenClaims.of(asked)
    assert unverified_claims(token) == TokenClaims.of(asked)
    assert write_token(TokenClaims.of(asked), HmacSigner(KEY)) == token
    assert all(one.isalnum() or one in "-_." for one in token)


def test_a_token_holds_nothing_of_what_is_asked_and_no_key():
    asked = question("t", scope="acme", text="Pay Bob?", name="pay", arguments={"whom": "Bob"}, reason_code="money")
    body = base64.urlsafe_b64decode(write_token(TokenClaims.of(asked), SIGNER).split(".")[1] + "===")
    assert set(json.loads(body)) == {"token_id", "run_id", "step_id", "digest", "scope", "expires"}
    for secret in (b"acme", b"Bob", b"pay", b"money", KEY, base64.urlsafe_b64encode(KEY)):
        assert secret not in body


# Mutations


def flipped(token: str, bit: int) -> str:
    data = bytearray(token.encode())
    data[bit // 8] ^= 1 << bit % 8
    return data.decode("latin-1")


TOKEN = write_token(TokenClaims.of(question("t")), SIGNER)


def test_any_bit_that_is_flipped_is_noticed():
    for bit in range(8 * len(TOKEN)):
        with pytest.raises(TokenTampered):
            read_token(flipped(TOKEN, bit), SIGNER)


def test_any_cut_is_noticed():
    for place in range(len(TOKEN)):
        for cut in (TOKEN[:place], TOKEN[place + 1 :], TOKEN[:place] + TOKEN[place + 1 :]):
            with pytest.raises(TokenTampered):
                read_token(cut, SIGNER)


@given(place=st.integers(0, len(TOKEN)), added=st.text(min_size=1, max_size=5))
@example(place=len(TOKEN), added="=")
@example(place=len(TOKEN), added="\n")
@example(place=0, added=" ")
def test_whatever_is_added_is_noticed(place, added):
    with pytest.raises(TokenTampered):
        read_token(TOKEN[:place] + added + TOKEN[place:], SIGNER)


def test_the_bits_that_base64_leaves_over_say_nothing():
    """Python reads `…A` and `…B` as the same bytes where only some of the last bits count."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for part in range(1, 3):
        parts = TOKEN.split(".")
        for last in alphabet:
            other = [*parts[:part], parts[part][:-1] + last, *parts[part + 1 :]]
            if other != parts:
                with pytest.raises(TokenTampered):
                    read_token(".".join(other), SIGNER)


@given(one=questions, other=questions)
def test_parts_of_two_tokens_make_none(one, other):
    first, second = (write_token(TokenClaims.of(each), SIGNER).split(".") for each in (one, other))
    for mixed in ([*first[:2], second[2]], [first[0], second[1], first[2]]):
        if mixed not in (first, second):
            with pytest.raises(TokenTampered):
                read_token(".".join(mixed), SIGNER)


@given(
    asked=questions,
    field=st.sampled_from([field.name for field in dataclasses.fields(TokenClaims)]),
    value=st.one_of(texts, st.floats(), st.none(), st.integers(), st.lists(texts)),
)
def test_a_field_that_is_changed_is_noticed(asked, field, value):
    claims = TokenClaims.of(asked)
    changed = {**dataclasses.asdict(claims), field: value}
    _, _, signature = write_token(claims, SIGNER).split(".")
    text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
    body = base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    if text != json.dumps(dataclasses.asdict(claims), sort_keys=True, separators=(",", ":")):
        with pytest.raises(TokenTampered):
            read_token(f"1.{body}.{signature}", SIGNER)


@given(asked=questions)
def test_a_token_of_another_key_is_none(asked):
    with pytest.raises(TokenTampered):
        read_token(write_token(TokenClaims.of(asked), HmacSigner(OTHER)), SIGNER)


@given(token=st.one_of(st.text(), st.binary().map(lambda data: data.hex()), st.from_regex(r"1\.[\w-]*\.[\w-]*")))
@example(token="")
@example(token="1.e30.AAAA")
@example(token="1." + "W1td" * 3000 + ".AAAA")
@example(token="1.W10.AAAA")
@example(token="1.OQ.AAAA")
@example(token="9" * 1_000_000)
def test_anything_else_is_none(token):
    with pytest.raises(TokenTampered):
        read_token(token, SIGNER)


@pytest.mark.parametrize("token", [None, 7, b"1.e30.AAAA", ["1"]], ids=lambda token: type(token).__name__)
def test_what_is_no_text_is_none(token):
    with pytest.raises(TokenTampered):
        people().redeem(token, "ann", YES)


def test_who_knows_another_use_of_the_key_makes_no_token():
    """A signature that the key made of these very bytes for something else is none."""
    body = TOKEN.split(".")[1]
    data = f"1.{body}".encode()
    name = SIGNER.sign(b"")[:8]
    forged = base64.urlsafe_b64encode(name + hmac.digest(KEY, data, "sha256")).rstrip(b"=").decode()
    with pytest.raises(TokenTampered):
        read_token(f"1.{body}.{forged}", SIGNER)


def test_every_mutation_is_told_alike_and_changes_nothing():
    ledger = MemoryLedger()
    interaction = people(ledger)
    token = waiting(ledger, interaction)
    before = ledger.questions()
    told = set()
    with at(15):
        for other in (
            token[:-1],
            flipped(token, 9),
            token + "A",
            "",
            write_token(TokenClaims.of(before[0]), HmacSigner(OTHER)),
        ):
            with pytest.raises(TokenTampered) as caught:
                interaction.redeem(other, "ann", YES)
            told.add(str(caught.value))
        assert len(told) == 1
        assert ledger.questions() == before
        interaction.redeem(token, "ann", YES)


# Keys


def test_tokens_of_the_key_before_are_known_until_it_is_gone():
    ledger = MemoryLedger()
    old = waiting(ledger, people(ledger))
    changed = people(ledger, HmacSigner(OTHER, KEY))
    assert changed.token_of(ledger.questions()[0]) != old
    with at(15):
        assert changed.question_of(old, "ann").token_id == "t"
        with pytest.raises(TokenTampered):
            people(ledger, HmacSigner(OTHER)).redeem(old, "ann", YES)
        changed.redeem(changed.token_of(ledger.questions()[0]), "ann", YES)
        with pytest.raises(TokenUsed):
            changed.redeem(old, "ann", YES)


@pytest.mark.parametrize(
    "key", [b"", b"x" * 31, "x" * 32, None, 32], ids=["none", "short", "text", "nothing", "number"]
)
def test_a_key_that_could_be_guessed_is_refused(key):
    with pytest.raises(OptionError):
        HmacSigner(key)
    with pytest.raises(OptionError):
        HmacSigner(KEY, key)
    with pytest.raises(OptionError):
        people(key=key)


def test_a_key_is_not_shown():
    shown = repr(SIGNER) + repr(people()) + str(people().manifest())
    assert repr(KEY)[2:-1] not in shown
    assert KEY.hex() not in shown


def test_a_signer_of_ones_own():
    class Vault:
        """A service that has the key."""

        def __init__(self) -> None:
            self.asked = 0

        def sign(self, data: bytes, /) -> bytes:
            self.asked += 1
            return data[::-1]

        def verify(self, data: bytes, signature: bytes, /) -> bool:
            return signature == data[::-1]

    vault, ledger = Vault(), MemoryLedger()
    assert isinstance(vault, Signer)
    interaction = people(ledger, vault)
    token = waiting(ledger, interaction)
    with at(15):
        interaction.redeem(token, "ann", YES)
    assert vault.asked == 1


# Codecs


def test_a_codec_makes_what_is_handed_out():
    ledger = MemoryLedger()
    interaction = people(ledger, encode_token=lambda token: token[::-1], decode_token=lambda text: text[::-1])
    token = waiting(ledger, interaction)
    with at(15):
        with pytest.raises(TokenTampered):
            interaction.redeem(token[::-1], "ann", YES)
        assert interaction.redeem(token, "ann", YES).token_id == "t"


def test_what_a_codec_cannot_read_is_no_token():
    def fails(text: str) -> str:
        raise LookupError(text)

    ledger = MemoryLedger()
    interaction = people(ledger, encode_token=str, decode_token=fails)
    with pytest.raises(TokenTampered):
        interaction.redeem(waiting(ledger, interaction), "ann", YES)


@pytest.mark.parametrize("option", ["encode_token", "decode_token"])
def test_a_codec_reads_what_it_writes(option):
    with pytest.raises(OptionError, match="both"):
        people(**{option: str})


# What a token is for


def test_a_token_is_for_its_scope():
    ledger = MemoryLedger()
    interaction = people(ledger)
    token = waiting(ledger, interaction)
    with at(15):
        for scope in ("bob", "", "ann ", "ANN", None, 3, ["ann"]):
            with pytest.raises(TokenScopeMismatch):
                interaction.redeem(token, scope, YES)  # ty: ignore
        assert ledger.find("t") == question("t", name="send")
        interaction.redeem(token, "ann", YES)
        # Others learn nothing about it afterwards, either.
        with pytest.raises(TokenScopeMismatch):
            interaction.redeem(token, "bob", YES)


@pytest.mark.parametrize(("seconds", "late"), [(0, False), (19.999, False), (20, True), (1e12, True)])
def test_a_token_expires(seconds, late):
    ledger = MemoryLedger()
    interaction = people(ledger)
    token = waiting(ledger, interaction)
    with at(seconds):
        if not late:
            interaction.redeem(token, "ann", YES)
            return
        with pytest.raises(TokenExpired):
            interaction.redeem(token, "ann", YES)
        with pytest.raises(TokenScopeMismatch):
            interaction.redeem(token, "bob", YES)
    assert ledger.find("t") == question("t", name="send")


def test_a_token_is_used_once():
    ledger = MemoryLedger()
    interaction = people(ledger)
    token = waiting(ledger, interaction)
    with at(15):
        interaction.redeem(token, "ann", Answer(approved=False, reason="no"))
        for answer in (YES, Answer(approved=False), Answer(arguments={"nonsense": 1})):
            with pytest.raises(TokenUsed):
                interaction.redeem(token, "ann", answer)
    with at(99), pytest.raises(TokenUsed):  # and not that it has expired: who asks wants to know that it was answered
        interaction.redeem(token, "ann", YES)


def test_a_token_is_for_what_was_asked_then():
    ledger = MemoryLedger()
    interaction = people(ledger)
    token = waiting(ledger, interaction)
    other = waiting(ledger, interaction, token_id="u", digest="e")
    with at(15):
        with pytest.raises(QuestionChanged):
            interaction.redeem(token, "ann", YES)
        interaction.redeem(other, "ann", YES)


def test_a_token_whose_question_is_another_one_by_now_is_for_nothing():
    """Another ledger has the same token id, by whatever accident."""
    ledger, elsewhere = MemoryLedger(), MemoryLedger()
    token = waiting(ledger, people(ledger))
    for field, value in (("run_id", "s"), ("step_id", "x"), ("digest", "e"), ("expires", 30.0)):
        elsewhere.forget("r")
        elsewhere.forget("s")
        elsewhere.ask(question("t", **{field: value}))
        with at(15), pytest.raises(QuestionChanged):
            people(elsewhere).redeem(token, "ann", YES)
        assert elsewhere.questions()[0].answer is None


def test_a_ledger_that_does_not_know_the_token_says_so():
    ledger = MemoryLedger()
    token = waiting(ledger, people(ledger))
    with at(15), pytest.raises(TokenUnknown, match="ledger"):
        people().redeem(token, "ann", YES)
    with at(20), pytest.raises(TokenExpired):
        people().redeem(token, "ann", YES)


def test_what_is_too_long_for_a_token_is_said_before_somebody_is_asked():
    ledger = MemoryLedger()
    with pytest.raises(ConfigurationError, match="shorter name"):
        people(ledger).token_of(question(token_id="t", run_id="r" * 13_000))
