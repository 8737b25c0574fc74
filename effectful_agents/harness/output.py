"""What the commands print."""

from __future__ import annotations

import os
import sys

__all__ = ["print_text"]


def print_text(text: str, plainer: str | None = None) -> None:
    """Print a text; where the output has no form for a character of it, another text, or without the character.

    Raises:
        SystemExit: Nobody reads it any more, as behind `| head`; or it cannot be written, as on a full disk, which is
            said on standard error.
    """
    if sys.stdout is None:  # it was closed before we began: `>&-`
        print("error: standard output is closed.", file=sys.stderr)
        raise SystemExit(1)
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.encode(encoding, "replace").decode(encoding) if plainer is None else plainer
    try:
        print(text, flush=True)
    except OSError as error:
        # Python itself writes what is left when it ends, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"error: standard output cannot be written: {error.strerror or error}.", file=sys.stderr)
        raise SystemExit(1) from None
