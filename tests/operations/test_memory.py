"""The vocabulary of memory: scopes, and which effect each operation is."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.encoding import decode, dumps, encode
from effectful_agents.operations import memory
from effectful_agents.operations.memory import MEMORY_EFFECTS, Memory, MemoryScope, memory_in_use, recalled
from effectful_agents.runtime import Operation

PARTS = st.text(st.sampled_from('a",[]\\ \U0001f600\n'), max_size=4)
SCOPES = st.builds(MemoryScope, PARTS.filter(bool), user=PARTS, agent=PARTS, session=PARTS)


@given(SCOPES, SCOPES)
def test_scopes_are_told_apart_by_their_keys_and_digests(one: MemoryScope, other: MemoryScope) -> None:
    assert (one == other) == (one.key == other.key) == (one.digest == other.digest)
    assert one.key.isascii()
    assert len(one.digest) == 32


def test_a_scope_goes_from_process_to_process() -> None:
    scope = MemoryScope("acme", user="ann")
    assert scope.key
    again = pickle.loads(pickle.dumps(scope))
    assert (again, hash(again), again.digest) == (scope, hash(scope), scope.digest)
    assert dataclasses.replace(scope, user="bob").key != scope.key


METADATA = st.dictionaries(st.text(st.characters(codec="utf-8")), st.none() | st.integers() | st.lists(st.booleans()))


@given(st.text(st.characters(codec="utf-8")), METADATA, st.lists(st.sampled_from("abc")))
def test_a_journal_gives_a_memory_again(text: str, metadata: dict[str, Any], tags: list[str]) -> None:
    written = [Memory("1", text, MemoryScope("acme"), 1.5, "fact", tuple(tags), metadata)]
    assert decode(dumps(encode(written, list[Memory])), list[Memory], strict=True) == written


def test_every_operation_that_reaches_a_store_is_an_effect() -> None:
    operations = {getattr(memory, name) for name in memory.__all__ if isinstance(getattr(memory, name), Operation)}
    assert set(MEMORY_EFFECTS) == operations - {recalled, memory_in_use}
