"""What is wrong with a token that somebody redeems, or with an answer that they give."""

from __future__ import annotations

from effectful_agents.errors.base import AgentsError

__all__ = [
    "AnswerError",
    "QuestionChanged",
    "TokenError",
    "TokenExpired",
    "TokenScopeMismatch",
    "TokenTampered",
    "TokenUnknown",
    "TokenUsed",
]


class TokenError(AgentsError):
    """A token cannot be redeemed. Nothing was done with it, and the run that it is for waits as before."""


class TokenTampered(TokenError):
    """What was given is no token of ours: it was changed, cut, made with another key, or was never one."""


class TokenScopeMismatch(TokenError):
    """Whoever redeems the token is not of the scope that it was made for."""


class TokenExpired(TokenError):
    """The time of the token is over. The run that it is for asks again, with another token, when it is resumed."""


class TokenUsed(TokenError):
    """The question of the token has been answered."""


class TokenUnknown(TokenError):
    """The token is sound, and the ledger has no question for it: it is another one, or the question was forgotten."""


class QuestionChanged(TokenError):
    """The run asks something else by now at the step that the token is for; it has another token for that."""


class AnswerError(AgentsError):
    """An answer does not fit its question: arguments that the tool does not take, or no text where one was asked for.

    It was not kept: the question can be answered again, with the same token.
    """
