"""Frozen image encoders beside a frozen language model, of which a projection alone is trained: Megatron's
examples/multimodal/train.py with --freeze-LM and --freeze-ViT.

Source: Megatron-LM core_v0.19.0, examples/multimodal/config.py (sizes of encoders and projections), model.py:127-160
(the encoder is tensor parallel like the language model, without sequence and context parallelism), model.py:207 (what
is frozen).
"""

from __future__ import annotations

from preflight.dialects.megatron.namespace import NotKnown, Run
from preflight.source.record import NamedTuple


class Encoder(NamedTuple):
    """layers, hidden size, width of all heads, intermediate size, input projections of the MLP."""

    layers: int
    hidden: int
    heads: int
    ffn: int
    gates: int = 1


ENCODERS = {
    "clip": Encoder(24, 1024, 1024, 4096),
    "siglip": Encoder(27, 1152, 1152, 4304),
    "internvit": Encoder(45, 3200, 3200, 12800),
    "internvit300M": Encoder(24, 1024, 1024, 4096),
    "radio": Encoder(32, 1280, 1280, 5120),
    "radio-g": Encoder(40, 1536, 1536, 4096, 2),
    "cradio-g": Encoder(40, 1536, 1536, 6144),
}
PROJECTIONS = {
    "llama3_8b": 14336,
    "llama3.1_8b": 4096,
    "mistral_7b": 14336,
    "yi-34b": 20480,
    "qwen2.0_72B": 29568,
    "qwen2.5_7B": 3584,
    "qwen2.5_72B": 29568,
    "llama3.2_1b": 2048,
}
"""Width of the projection's middle, by --language-model-type."""
LARGEST_IMAGE = 2048


def beside(run: Run) -> tuple[float, float, float] | None:
    """Parameters on a rank of the frozen encoder, and of the projection that is trained; bytes that the projection
    keeps for a token at the most. None where no such run is known."""
    if not all(_typed(run, name) is True for name in ("freeze_LM", "freeze_ViT")):
        return None
    encoder, middle = ENCODERS.get(str(_typed(run, "vision_model_type") or "clip")), _middle(run)
    if encoder is None or middle is None:
        return None
    tensor, size = int(run.tensor_model_parallel_size), _typed(run, "patch_dim")
    patch = size if isinstance(size, int) and size > 0 else 14
    heads = _padded_heads(tensor, int(run.kv_channels)) if encoder is ENCODERS["internvit"] else encoder.heads
    layer = 4 * encoder.hidden * heads + (encoder.gates + 1) * encoder.hidden * encoder.ffn
    whole = encoder.hidden * (3 * patch**2 + (LARGEST_IMAGE // patch) ** 2)  # patches, and their positions
    wide = encoder.hidden * (4 if _typed(run, "pixel_shuffle") is True else 1)
    trained = (wide + int(run.hidden_size)) * middle / tensor
    return encoder.layers * layer / tensor + whole, trained, 2 * wide + 4 * middle / tensor


def samples(run: Run) -> str:
    """The option that says how many tokens the language model gets: --seq-length is the encoder's then."""
    return "decoder_seq_length" if beside(run) is not None and _typed(run, "decoder_seq_length") else "seq_length"


def frozen(run: Run) -> bool:
    """Whether such a run is known; where a size is not, it is not."""
    try:
        return beside(run) is not None
    except (NotKnown, TypeError, ValueError, ArithmeticError):
        return False


def _padded_heads(tensor: int, channels: int) -> int:
    """InternViT-6B's 25 heads, as many as divide by tensor parallel (config.py: 24 // t + 1 on each rank)."""
    return (24 // tensor + 1) * tensor * channels


def _middle(run: Run) -> int | None:
    return PROJECTIONS.get(str(_typed(run, "language_model_type")))


def _typed(run: Run, name: str) -> object:
    given = run.written.get(name)
    return given.raw if given is not None and given.known else None
