"""Options that a hybrid layer pattern replaces, because it determines the number of layers and the pipeline stages."""

from preflight.lint.constraint import Constraint, ConstraintSet, conflicts, divides, drop
from preflight.lint.expressions import Handle
from preflight.rules.megatron.option_names import REFUSED, a, all_of
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
PATTERN = a.hybrid_layer_pattern.is_set
PIPES = all_of(PATTERN, a.hybrid_has_pipes)


def replaced(
    id: str, handle: Handle, flag: str, instead: str, line: int, *, switch: bool = False, pipes: bool = False
) -> Constraint:
    """An option that cannot be combined with a pattern."""
    return conflicts(
        id,
        PIPES if pipes else PATTERN,
        handle if switch else handle.is_set,
        message=(
            f"{flag} does not work with a hybrid layer pattern{' with pipeline segments' if pipes else ''}, where {instead}"
        ),
        why=REFUSED,
        at=(handle, a.hybrid_layer_pattern, a.hybrid_override_pattern),
        fixes=(drop(handle, safety=Safety.UNSAFE),),
    )


SEGMENTS = "the `|` separators define the stages"
MEGATRON.add(
    conflicts(
        "hybrid-pattern-twice",
        a.hybrid_override_pattern.given,
        a.hybrid_layer_pattern.given,
        message=(
            "--hybrid-override-pattern and --hybrid-layer-pattern are both given; --hybrid-override-pattern is the "
            "older name"
        ),
        at=(a.hybrid_override_pattern, a.hybrid_layer_pattern),
        fixes=(drop(a.hybrid_override_pattern),),
    ),
    replaced(
        "pattern-with-first-stage",
        a.decoder_first_pipeline_num_layers,
        "--decoder-first-pipeline-num-layers",
        SEGMENTS,
        804,
        pipes=True,
    ),
    replaced(
        "pattern-with-last-stage",
        a.decoder_last_pipeline_num_layers,
        "--decoder-last-pipeline-num-layers",
        SEGMENTS,
        809,
        pipes=True,
    ),
    replaced(
        "pattern-with-layers-per-virtual-stage",
        a.num_layers_per_virtual_pipeline_stage,
        "--num-layers-per-virtual-pipeline-stage",
        "more segments than stages make virtual stages",
        814,
    ),
    replaced(
        "pattern-with-virtual-stages",
        a.num_virtual_stages_per_pipeline_rank,
        "--num-virtual-stages-per-pipeline-rank",
        "more segments than stages make virtual stages",
        820,
    ),
    replaced(
        "pattern-with-layout", a.pipeline_model_parallel_layout, "--pipeline-model-parallel-layout", SEGMENTS, 825
    ),
    replaced(
        "pattern-with-counted-embedding",
        a.account_for_embedding_in_pipeline_split,
        "--account-for-embedding-in-pipeline-split",
        SEGMENTS,
        829,
        switch=True,
    ),
    replaced(
        "pattern-with-counted-loss",
        a.account_for_loss_in_pipeline_split,
        "--account-for-loss-in-pipeline-split",
        SEGMENTS,
        834,
        switch=True,
    ),
    divides(
        "pattern-segments-over-stages",
        a.pipeline_model_parallel_size,
        a.hybrid_num_segments,
        when=PIPES,
        message=(
            "the hybrid pattern has {hybrid_num_segments} pipeline segments, which are not divisible by the "
            "pipeline-parallel size {pipeline_model_parallel_size}"
        ),
        at=(a.hybrid_layer_pattern, a.pipeline_model_parallel_size),
        layout=True,
    ),
)
