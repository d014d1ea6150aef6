"""Writing to stdout, whatever stands behind it: a closed pipe is silence, a poor encoding is no crash."""

from __future__ import annotations

import os
import sys


def say(text: str) -> None:
    """Write a text and flush it; when nobody reads any more, the rest is dropped and the exit code stays true."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        say(text.encode(encoding, "backslashreplace").decode(encoding))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
