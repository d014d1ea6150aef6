"""Front ends: programs that start Megatron underneath. Their keys are their own, the constraints are Megatron's."""

from __future__ import annotations
