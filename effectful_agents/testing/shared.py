"""A cassette whose file is also that of other tests."""

from __future__ import annotations

from typing import Any, override

from effectful_agents.testing.cassette import Cassette
from effectful_agents.testing.tape import Recording

__all__ = ["shared_cassette"]


def shared_cassette(*args: Any, owner: str, renewed: dict[str, str], **options: Any) -> Cassette:
    """A cassette of one test, in a file that other tests of the session may use too.

    `rewrite` forgets nothing in it, since another test may need what this one did not ask. What another test asked anew
    in this session is given, and not asked once more: else the two would take the replies from one another.

    Args:
        *args: Those of `Cassette`.
        owner: The test.
        renewed: Which test asked which request anew, by digests; the same for all tests of the file.
        **options: Those of `Cassette`.

    >>> shared_cassette("shared.json", "rewrite", owner="test_a", renewed={}).mode
    'rewrite'
    """
    return _SharedCassette(*args, owner=owner, renewed=renewed, **options)


class _SharedCassette(Cassette):
    def __init__(self, *args: Any, owner: str, renewed: dict[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._owner = owner
        self._renewed = renewed

    @override
    def _is_new(self, digest: str) -> bool:
        return self._renewed.get(digest, self._owner) != self._owner

    @override
    def _forget_unasked(self) -> None:
        pass

    @override
    def _renewed_replies(self, old: Recording, written: dict[str, Any]) -> list[dict[str, Any]]:
        given = self._given[old.request.digest]
        return [*old.replies[:given], written, *old.replies[given + 1 :]]

    @override
    def _note_renewed(self, digest: str) -> None:
        super()._note_renewed(digest)
        self._renewed.setdefault(digest, self._owner)
