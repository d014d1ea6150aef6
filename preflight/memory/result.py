"""The values of a memory estimate, and the parts without a term."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from preflight.run.unmodelled_features import Unmodelled
from preflight.source.record import NamedTuple, dataclass
from preflight.source.typing_without_import import Literal

LOW = 0.92
"""The minimum allocation relative to the predicted low end: no measured dense run was below 0.96
(benchmarks/memory.py)."""
LOW_MIXED = 0.87
"""The same with experts or FP8, for which a bound from dense runs is not valid: 1 / the margin of such runs; the lowest
had 0.92."""

WIDE = 2.0
"""A range wider than this factor shows the possible need of a run, not the likely one."""

Verdict = Literal["does-not-fit", "at-risk", "fits", "unknown"]


class Term(NamedTuple):
    """One contribution, as a range in bytes, with its formula. kind: the total that it enters."""

    name: str
    low: float
    high: float
    formula: str = ""
    kind: Literal["steady", "dynamic", "device"] = "dynamic"


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline rank. steady: allocated after a step; allocated_peak: the maximum during one; required: device
    need."""

    index: int
    terms: tuple[Term, ...]
    steady: float
    allocated_peak: float
    required: float
    parameters: float = 0.0
    first_step: float = 0.0
    """The maximum during the first step, before the optimizer has created its moments: the value reported by short
    benchmark runs."""
    sure: float = LOW

    @property
    def low(self) -> float:
        """The minimum allocation at the peak: the terms' low ends, and the error of the estimate."""
        return self.sure * sum(term.low for term in self.terms if term.kind != "device")


KINDS = ("steady", "dynamic", "device")


def term_names(stages: Iterable[Stage]) -> list[str]:
    """Names of all terms, each once: steady ones, those at the peak, and those outside allocated bytes."""
    terms = [term for stage in stages for term in stage.terms if term.high]
    return list(dict.fromkeys(term.name for kind in KINDS for term in terms if term.kind == kind))


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Stages in pipeline order. unknown: why nothing (or not everything) could be estimated. budget: bytes of the
    device, None unknown. taken: unknown values counted as a range. assumed: values assumed to be usual, from a
    published name or as the nearest that the framework accepts."""

    stages: tuple[Stage, ...] = ()
    verdict: Verdict = "unknown"
    budget: float | None = None
    unknown: tuple[str, ...] = ()
    outside: float = 0.0
    """Bytes of communication buffers for which a memory pool of fixed size leaves no room (Ascend)."""

    taken: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    supposed: bool = False
    """Whether the run itself states too little, or values that the framework refuses: no rule reports this."""

    replaced: tuple[str, ...] = ()
    """Explicit values that the estimate replaced, in words: then there is no verdict on the run."""

    @property
    def low(self) -> float:
        """The minimum device memory: the highest low end of all stages."""
        return max((stage.low for stage in self.stages), default=0.0)

    @property
    def span(self) -> tuple[float, float]:
        """The required device memory, from the low end to the possible need of the decisive stage."""
        worst = self.worst
        return self.low, max(self.low, worst.required if worst is not None else 0.0)

    @property
    def wide(self) -> bool:
        """Whether the two ends are too far apart for a warning about the high one."""
        worst = self.worst
        return worst is not None and self.low * WIDE < worst.allocated_peak

    @property
    def worst(self) -> Stage | None:
        """The decisive stage: the one with the highest need."""
        return max(self.stages, key=lambda stage: stage.required, default=None)


_NOTHING: Mapping[str, object] = MappingProxyType({})


class Gap(NamedTuple):
    """least, most: factors of the activations. whole: of everything allocated, at most. freed: outputs that may be
    absent. steady: the minimum factor of memory that stays between steps. recorded: the largest factor of all allocated
    memory in recordings. bound: whether the low end is a bound; it is not if the model may be a different one."""

    least: float = 1.0
    most: float | None = 1.0
    whole: float = 1.0
    freed: tuple[str, ...] = ()
    low: Mapping[str, object] = _NOTHING
    high: Mapping[str, object] = _NOTHING
    steady: float = 1.0
    recorded: float = 1.0
    bound: bool = True


_ATTENTION = (
    *("query key value", "query key norm inputs", "key value up", "compressed query", "compressed key value"),
    *("attention output", "attention output, padded", "attention output, exchanged", "softmax statistics", "scores"),
)
_EXPERTS = ("dispatched tokens", "fc1 output", "activation output", "gate activation", "weighted activation")

_FROZEN = {"optimizer.name": "lomo", "precision.gradients": "none", "precision.master": None}

GAPS: dict[Unmodelled, Gap] = {
    # all or none of them are on the host while other layers run
    Unmodelled.OFFLOADED_ACTIVATIONS: Gap(least=0.0),
    # the memory that layers keep is in a pool of the graphs, which a replay does not count as allocated and nothing
    # else can use: the device needs it nevertheless, and the buffers that graphs read and write too. Of two runs that
    # differ only in graphs, one peaks at 119.8 GiB, the other at 85.9 (Megatron-Bridge 067f987,
    # nemo-mbridge-memory-snapshot-analysis)
    Unmodelled.CUDA_GRAPHS: Gap(whole=1.4),
    # 1.5 to 2 times the peak (Megatron-Bridge 067f987, nemo-mbridge-perf-cuda-graphs, pitfall 4)
    Unmodelled.WHOLE_CUDA_GRAPH: Gap(whole=2.0),
    # a bias of the size of the scores, or scores that exist because no fused kernel is used
    Unmodelled.ALIBI: Gap(high={"model.attention": "unfused-fp32"}),
    # other operators instead of attention's: its outputs may be absent, and an indexer's may be added
    Unmodelled.OTHER_ATTENTION: Gap(freed=_ATTENTION, most=2.0, steady=0.8, whole=1.1),
    # latent attention stays as it is, with an additional indexer: q·n·d + h(d + n) weights if it exists, < 3 %
    # of a layer; a recording of GLM-5.2 with ten layers (MindSpeed-LLM, pretrain_glm52_tp1pp2ep1_dsa_share_index) has
    # 0.7 % more after the step than the model without
    Unmodelled.LATENT_ATTENTION_INDEXER: Gap(freed=_ATTENTION, most=2.0, whole=1.03),
    Unmodelled.ZERO_EXPERTS: Gap(freed=_EXPERTS),
    # experts of the latent size; without them in the low end
    Unmodelled.LATENT_EXPERTS: Gap(low={"model.experts": 0}),
    # MindSpeed's --fsdp2-config-path, which is not read, may recompute layers, move weights and states to the host and
    # share them over fewer ranks; it is assumed not to
    Unmodelled.FSDP2_BY_FILE: Gap(least=0.0, low={"optimizer.offload": 1.0}, bound=False),
    # recordings need 7 to 35 % more
    Unmodelled.FP8_WITH_FSDP: Gap(recorded=1.35),
    # 4 bits where 8-bit training has 8, with scales; copies of weights in addition
    Unmodelled.FP4: Gap(least=0.5, most=1.25, whole=1.1),
    # states are in memory provided by the host
    Unmodelled.VIRTUAL_OPTIMIZER: Gap(low={"optimizer.offload": 1.0}),
    Unmodelled.LOW_PRECISION_OPTIMIZER: Gap(low={"optimizer.offload": 1.0}, steady=0.7),
    # weights, gradients and states divided over all ranks, or over fewer
    Unmodelled.LAYERZERO: Gap(
        low={"optimizer.zero": 3, "optimizer.shards": 1 << 20, "optimizer.expert_shards": 1 << 20}
    ),
    # from no states at all to 1.5 times those of Adam
    Unmodelled.OTHER_OPTIMIZER: Gap(low={"optimizer.name": "lomo"}, high={"optimizer.name": "adam"}, whole=1.5),
    Unmodelled.OTHER_ADAPTERS: Gap(low={"model.lora_targets": ("query",)}, high={"model.lora_targets": ()}),
    # layers of one operator each instead of attention and an MLP: a Mamba layer (d_inner = 2 h) has 6 h² weights and
    # keeps 28·T·h, attention alone from 2 h² on; a whole layer has 12 h² and keeps 34·T·h (Korthikanti et al. 2022)
    Unmodelled.HYBRID_MODEL: Gap(least=0.2, most=1.1, steady=0.2),
    # a separate head and pooler in addition to the layers, and scores of padded samples
    Unmodelled.ENCODER_ALONE: Gap(most=1.2, whole=1.1),
    # a decoder of the same depth, with attention to the encoder in each layer: 4/3 of the encoder's weights
    Unmodelled.ENCODER_AND_A_DECODER: Gap(most=2.5, whole=2.6),
    # four streams add to the memory that a layer keeps: to 34·S·h they add 20 in Megatron-LM, 52 in MindSpeed-LLM
    # unfused (streams.py); a recomputed layer keeps four inputs
    Unmodelled.HYPER_CONNECTIONS: Gap(most=4.0, whole=1.1),
    # a search may split any operator over any of the devices of a stage, or leave it whole
    Unmodelled.SHARDING_THAT_IS_SEARCHED: Gap(bound=False),
    # parts of the model may be frozen, others are added
    Unmodelled.OWN_ENTRY_SCRIPT: Gap(least=0.0, whole=1.25, low=_FROZEN, bound=False),
    # additional encoders, of a fifth of its weights at most (InternViT-6B with 34B and 72B)
    Unmodelled.FROZEN_LANGUAGE_MODEL: Gap(least=0.0, whole=1.3, low=_FROZEN, high=_FROZEN, bound=False),
    # additional networks besides the one that the options describe
    Unmodelled.REINFORCEMENT_LEARNING: Gap(most=None),
    # an additional optimizer and activations of unknown size
    Unmodelled.CRITIC: Gap(most=None),
    # 0.5 to 6 billion parameters, which need 2 bytes each while they are frozen, and activations of images
    Unmodelled.ENCODERS_BESIDE: Gap(most=1.3, whole=1.15),
    # a mask and a copy of the input of each linear with an adapter: 1 byte more for the 2 bytes of the input
    Unmodelled.DROPOUT_BEFORE_ADAPTERS: Gap(most=1.5),
    # unknown features: from none of them to nearly all
    Unmodelled.FROZEN_PARAMETERS: Gap(least=0.0, low=_FROZEN),
    Unmodelled.RETRIEVAL: Gap(most=1.5, whole=1.5),
    Unmodelled.SEVERAL_ENCODERS: Gap(most=None),
    Unmodelled.DISTILLATION_TEACHER: Gap(most=None),
}
"""Figures without a source are stated gaps: no measurement bounds them."""


def gap(features: Iterable[Unmodelled]) -> Gap | None:
    """The gap of all features together; None if one of them has no stated gap."""
    found = Gap()
    for name in features:
        one = GAPS.get(name)
        if one is None:
            return None
        found = Gap(
            found.least * one.least,
            None if found.most is None or one.most is None else found.most * one.most,
            found.whole * one.whole,
            found.freed + one.freed,
            {**found.low, **one.low},
            {**found.high, **one.high},
            found.steady * one.steady,
            found.recorded * one.recorded,
            found.bound and one.bound,
        )
    return found
