"""Megatron's hybrid layer patterns: "M*M-|M*M-/MM/MM" as decoder segments and prediction depths.

M Mamba, * attention, - MLP, E experts, G gated delta net, D sparse attention, + latent attention; "|" parts the decoder
into pipeline segments, every "/" starts one depth of multi-token prediction, and all depths are the same.
"""

from __future__ import annotations

from functools import lru_cache

from preflight.source.record import NamedTuple

SYMBOLS = "MG*D+-E"


class Hybrid(NamedTuple):
    """A pattern in its parts. depth: the layers of one prediction depth, None without; depths: how many there are.

    strange: the first character that is no layer, or "". uneven: two prediction depths that differ, or None.
    mixed: plain attention together with latent or sparse attention in the decoder or in a depth.
    """

    segments: tuple[str, ...]
    depth: str | None = None
    depths: int = 0
    strange: str = ""
    uneven: tuple[str, str] | None = None
    mixed: bool = False

    @property
    def layers(self) -> int:
        """Decoder layers."""
        return sum(map(len, self.segments))


@lru_cache
def parse_hybrid(text: str) -> Hybrid:
    """Read a pattern; its parts are given even where it is faulty."""
    main, *rest = text.split("/")
    depths = rest if any(rest) else []
    segments = tuple(main.split("|"))
    strange = next((c for c in "".join((*segments, *depths[:1])) if c not in SYMBOLS), "")
    uneven = next(((depths[0], other) for other in depths[1:] if other != depths[0]), None)
    mixed = any("*" in part and ("D" in part or "+" in part) for part in (main, *depths[:1]))
    return Hybrid(segments, depths[0] if depths else None, len(depths), strange, uneven, mixed)
