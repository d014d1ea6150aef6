"""The encoding of a text: UTF-8; of a shell script whatever it is, because a shell reads bytes."""

from __future__ import annotations

YAML_SUFFIXES = (".yaml", ".yml")
SCRIPT_SUFFIXES = (".sh", ".bash", ".sbatch", ".slurm", ".job")
UTF_8 = "utf-8"
CHINESE = "gb18030"
"""GBK and GB 2312 are parts of it."""
BYTES = "latin-1"
"""Gives every byte a character of its own, so that the ASCII in a text stands where a shell sees it."""


def is_script_name(name: str) -> bool:
    """Whether a name is a shell script's."""
    return name.lower().endswith(SCRIPT_SUFFIXES)


def decoded(data: bytes, *, script: bool) -> tuple[str, str]:
    """The text of bytes, and its encoding. script: a shell runs it. Raises UnicodeDecodeError."""
    try:
        return data.decode(UTF_8), UTF_8
    except UnicodeDecodeError:
        if not (script or data.startswith(b"#!")):
            raise
    try:
        text = data.decode(CHINESE)
    except UnicodeDecodeError:
        return data.decode(BYTES), BYTES
    faithful = sum(char.isascii() for char in text) == sum(byte < 0x80 for byte in data)
    return (text, CHINESE) if faithful else (data.decode(BYTES), BYTES)
