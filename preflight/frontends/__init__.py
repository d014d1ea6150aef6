"""Front ends: programs that start Megatron internally. They have their own keys and Megatron's constraints."""

from __future__ import annotations
