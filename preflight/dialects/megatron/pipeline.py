"""How layers are split over pipeline stages and virtual stages: patterns, lists, MindSpeed's stages."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby

from preflight.dialects.megatron.derivation_namespace import ARGUMENTS, NotKnown, Run, derives
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple

LETTERS = "EtmL"
_GROUPS = lazy_pattern(r"\(([^)]+)\)(?:\*(\d+))?")
"""For a text that ends with a parenthesis, an unrepeated group matches as well, so that the search ends there."""
_NUMBER = lazy_pattern(r"\*\d+")
_LETTERS = lazy_pattern(r"(.)\*(\d+)")
_LONGEST = 100_000


class Layout(NamedTuple):
    """The stages in order, as strings of letters. strange: the first character that is not a layer, or "". too_long:
    the repetitions would produce more than a hundred thousand characters and were not expanded.
    """

    stages: tuple[str, ...]
    strange: str = ""
    too_long: bool = False

    @property
    def letters(self) -> str:
        """All layers in order."""
        return "".join(self.stages)

    def count(self, letter: str) -> int:
        """The number of layers of a kind."""
        return self.letters.count(letter)

    def chunks(self, pipeline: int) -> tuple[tuple[str, ...], ...] | None:
        """The stages by pipeline rank, then virtual stage; None if they are not divisible."""
        if pipeline < 1 or len(self.stages) % pipeline:
            return None
        return tuple(self.stages[rank::pipeline] for rank in range(pipeline))


@lru_cache
def parse_layout(text: str) -> Layout:
    """Read a layout string. Stages are returned even if a character is invalid."""
    text = text.replace(",", "")
    for pattern, end in ((_GROUPS, _end_of_groups(text)), (_LETTERS, None)):
        head, tail = (text, "") if end is None else (text[:end], text[end:])
        if len(text) + sum(len(m[1]) * int((m[2] or "0")[:9]) for m in pattern.finditer(head)) > _LONGEST:
            return Layout((), "", True)
        text = pattern.sub(lambda m: m[1] * int(m[2]) if m[2] else m[0], head) + tail
    stages = tuple(text.split("|"))
    return Layout(stages, next((c for stage in stages for c in stage if c not in LETTERS), ""))


def _end_of_groups(text: str) -> int:
    """The end of the last group, including its number."""
    end = text.rfind(")") + 1
    number = _NUMBER.match(text, end)
    return number.end() if number else end


def written(chunks: tuple[tuple[int, ...], ...], depths: int = 0) -> str:
    """The layout string of decoder layers by virtual stage and pipeline rank; prediction layers are on the last."""
    first, *middle, last = (count for row in chunks for count in row)
    between = ((count, len(list(same))) for count, same in groupby(middle))
    parts = (f"({'t' * count}|)*{times}" if times > 1 else f"{'t' * count}|" for count, times in between)
    return f"E{'t' * first}|{''.join(parts)}{'t' * last}{'m' * depths}L"


SYMBOLS = "MG*D+-E"


class Hybrid(NamedTuple):
    """The parts of a pattern. depth: the layers of one prediction depth, None without any; depths: their number.
    strange: the first character that is not a layer, or "". uneven: two different prediction depths, or None. mixed:
    plain attention together with latent or sparse attention in the decoder or in a depth.
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
    """Read a pattern; its parts are returned even if it is faulty."""
    main, *rest = text.split("/")
    depths = rest if any(rest) else []
    segments = tuple(main.split("|"))
    strange = next((c for c in "".join((*segments, *depths[:1])) if c not in SYMBOLS), "")
    uneven = next(((depths[0], other) for other in depths[1:] if other != depths[0]), None)
    mixed = any("*" in part and ("D" in part or "+" in part) for part in (main, *depths[:1]))
    return Hybrid(segments, depths[0] if depths else None, len(depths), strange, uneven, mixed)


def stated_chunks(run: Run) -> tuple[tuple[int, ...], ...] | None:
    """Layers by rank and virtual stage if they are written explicitly: --num-layer-list or
    --pipeline-num-transformer-layers."""
    pipeline = run.pipeline_model_parallel_size
    if run.num_layer_list is not None:
        rows: tuple[tuple[int, ...], ...] = tuple((int(part),) for part in str(run.num_layer_list).split(","))
        if run.layerwise_disaggregated_training:  # the first stage holds the last layers as well
            rows = ((*rows[0], *rows[-1]), *((*row, 0) for row in rows[1:-1]))
    elif run.pipeline_num_transformer_layers is not None:
        rows = tuple(
            tuple(int(n) for n in re.findall(r"\d+", row))
            for row in re.findall(r"\[([\d,\s]+)\]", run.pipeline_num_transformer_layers)
        )
        if "*" in run.pipeline_num_transformer_layers:
            raise NotKnown("the layers per stage use repetition syntax")
    else:
        return None
    if len(rows) != pipeline or sum(map(sum, rows)) != run.num_layers:
        raise NotKnown("the listed layers do not match the number of layers and stages")
    return rows


def held_layers(run: Run) -> tuple[tuple[int, ...], ...]:
    """Layers that compute, by virtual stage and pipeline rank. DualPipeV folds twice the number of stages into a V
    (dualpipev_chunks.py:43-52)."""
    if run.schedules_method != "dualpipev":
        return tuple(zip(*without_noop(run, run.layers_per_chunk), strict=True))
    ranks = run.pipeline_model_parallel_size
    if run.num_layers % (2 * ranks):
        raise NotKnown("the layers are not divisible by twice the number of pipeline stages")
    held = [row[0] for row in without_noop(run, ((run.num_layers // (2 * ranks),),) * (2 * ranks))]
    return tuple(held[:ranks]), tuple(held[: ranks - 1 : -1])


def without_noop(run: Run, chunks: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Layers that compute: layers named by --noop-layers only pass their input on."""
    if not run.noop_layers:
        return chunks
    skipped = {int(part) for part in str(run.noop_layers).split(",")}
    first, rows = 0, [list(row) for row in chunks]
    for virtual in range(len(chunks[0])):
        for rank, row in enumerate(chunks):
            rows[rank][virtual] -= sum(first <= layer < first + row[virtual] for layer in skipped)
            first += row[virtual]
    return tuple(map(tuple, rows))


MOST_CHUNKS = 100_000
"""A larger number of chunks than any machine has is not expanded."""
Chunks = tuple[tuple[int, ...], ...]
"""Layers by pipeline rank, then virtual stage."""


@derives(
    "hybrid_main_pattern",
    "hybrid_mtp_pattern",
    "hybrid_mtp_depths",
    "hybrid_num_segments",
    "hybrid_has_pipes",
    "hybrid_layer_pattern",
)
def hybrid_pattern(run: Run) -> None:
    """A parsed hybrid pattern."""
    pattern = run.hybrid_layer_pattern if run.hybrid_layer_pattern is not None else run.hybrid_override_pattern
    if not _counts(run) or not isinstance(pattern, str):
        return
    source = _source(run)
    if source == "hybrid_override_pattern":
        run.switch("hybrid_layer_pattern", pattern, "--hybrid-override-pattern is its older name", f"{ARGUMENTS}:752")
    if run.mtp_hybrid_override_pattern is not None and run.mtp_num_layers and "/" not in pattern:
        pattern += "/" + "/".join([run.mtp_hybrid_override_pattern] * run.mtp_num_layers)
    found = parse_hybrid(pattern)
    if found.strange or found.uneven or found.mixed:
        raise NotKnown("the hybrid layer pattern is rejected")
    run.derive("hybrid_main_pattern", "|".join(found.segments), of=source)
    run.derive("hybrid_mtp_pattern", found.depth, of=source)
    run.derive("hybrid_mtp_depths", found.depths, of=source)
    run.derive("hybrid_num_segments", len(found.segments), of=source)
    run.derive("hybrid_has_pipes", len(found.segments) > 1, of=source)


@derives("num_layers", "mtp_num_layers", "multi_latent_attention")
def hybrid_layers(run: Run) -> None:
    """A hybrid pattern sets the number of layers, regardless of --num-layers."""
    source = _source(run)
    if not _counts(run) or not run.value(source).written:
        return
    layers, given = len(run.hybrid_main_pattern.replace("|", "")), run.value("num_layers")
    if given.written and given.raw != layers:
        run.switch("num_layers", layers, "the hybrid layer pattern takes precedence", f"{ARGUMENTS}:797")
    else:
        run.derive("num_layers", layers, "length of the hybrid layer pattern", of=source)
    depths = run.hybrid_mtp_depths
    if depths and run.mtp_num_layers is None:
        run.derive("mtp_num_layers", depths, "depths of the hybrid layer pattern", of=source)
    elif depths and run.mtp_num_layers != depths:
        run.switch("mtp_num_layers", depths, "the hybrid layer pattern defines its depths", f"{ARGUMENTS}:879")
    if {"D", "+"} & set(run.hybrid_main_pattern + (run.hybrid_mtp_pattern or "")):
        run.switch("multi_latent_attention", True, "the hybrid layer pattern has latent attention", f"{ARGUMENTS}:923")


def _counts(run: Run) -> bool:
    """Whether a hybrid pattern sets the number of layers: since 0.17, and if a checkout of an older release has that
    option."""
    given = run.written.get("hybrid_layer_pattern")
    return run.is_core(">=0.17") or (given is not None and isinstance(given.raw, str))


def _source(run: Run) -> str:
    """The option that holds the hybrid pattern."""
    return "hybrid_layer_pattern" if run.written.get("hybrid_layer_pattern") is not None else "hybrid_override_pattern"


@derives("num_layers", "encoder_num_layers")
def encoder_layers(run: Run) -> None:
    """--encoder-num-layers is another name for --num-layers."""
    if run.num_layers is not None:
        run.derive("encoder_num_layers", run.num_layers, of="num_layers")
    elif run.encoder_num_layers is not None:
        run.derive("num_layers", run.encoder_num_layers, of="encoder_num_layers")


@derives("layout_num_stages", "layout_num_layers", "layout_num_mtp")
def layout_counts(run: Run) -> None:
    """The contents of a pipeline layout."""
    if run.pipeline_model_parallel_layout is None:
        return
    found = _layout(run.pipeline_model_parallel_layout)
    for name, count in (
        ("stages", len(found)),
        ("layers", "".join(found).count("t")),
        ("mtp", "".join(found).count("m")),
    ):
        run.derive(f"layout_num_{name}", count, of="pipeline_model_parallel_layout")


@derives("pipeline_num_layers")
def counted_layers(run: Run) -> None:
    """The number of layers to split, plus one each for embedding and loss if they are counted."""
    extra = bool(run.account_for_embedding_in_pipeline_split) + bool(run.account_for_loss_in_pipeline_split)
    layers = (
        len(str(run.num_layer_list).split(",")) - bool(run.layerwise_disaggregated_training)
        if run.num_layer_list
        else run.num_layers
    )
    run.derive("pipeline_num_layers", layers + extra, of="num_layers")


@derives("virtual_pipeline_model_parallel_size")
def virtual_stages(run: Run) -> None:
    """Virtual stages per pipeline rank; None without interleaving."""
    pipeline = run.pipeline_model_parallel_size
    virtual: int | None = None
    of = "virtual_pipeline_model_parallel_size"
    if run.pipeline_model_parallel_layout is not None:
        of = "pipeline_model_parallel_layout"
        virtual = _whole(run.layout_num_stages, pipeline, "stages of the layout")
    elif run.num_layers_per_virtual_pipeline_stage is not None:
        of = "num_layers_per_virtual_pipeline_stage"
        stage = _whole(run.pipeline_num_layers, pipeline, "layers")
        virtual = _whole(stage, run.num_layers_per_virtual_pipeline_stage, "layers of a stage")
    elif run.num_virtual_stages_per_pipeline_rank is not None:
        of = "num_virtual_stages_per_pipeline_rank"
        virtual = run.num_virtual_stages_per_pipeline_rank
    elif _counts(run) and run.hybrid_layer_pattern is not None:
        of = "hybrid_layer_pattern"
        segments = run.hybrid_num_segments
        virtual = (
            None
            if segments == 1 and pipeline > 1
            else _whole(segments, pipeline, "segments of the hybrid layer pattern")
        )
    if virtual == 1 and run.is_core(">=0.13"):
        virtual = None
    run.derive("virtual_pipeline_model_parallel_size", virtual, of=of)


@derives("overlap_p2p_comm", "align_param_gather")
def point_to_point(run: Run) -> None:
    """Without virtual stages nothing overlaps between stages."""
    if run.virtual_pipeline_model_parallel_size is None:
        place = f"{ARGUMENTS}:{1012 if run.is_core('>=0.13') else 447}"
        run.switch("overlap_p2p_comm", False, "there are no virtual stages", place)
        run.switch("align_param_gather", False, "there are no virtual stages", place)


@derives("layers_per_chunk")
def layers_per_chunk(run: Run) -> None:
    """Decoder layers of every chunk: by pipeline rank, then virtual stage."""
    run.derive("layers_per_chunk", chunks(run), of="num_layers")


def chunks(run: Run) -> Chunks:
    """Decoder layers by pipeline rank and virtual stage. Raises NotKnown if upstream refuses the split."""
    pipeline, virtual = run.pipeline_model_parallel_size, run.virtual_pipeline_model_parallel_size or 1
    if not 0 < pipeline * virtual <= MOST_CHUNKS:
        raise NotKnown(f"{pipeline} × {virtual} stages are more than preflight supports")
    if run.pipeline_model_parallel_layout is not None:
        counts = tuple(stage.count("t") for stage in _layout(run.pipeline_model_parallel_layout))
        return tuple(tuple(counts[v * pipeline + rank] for v in range(virtual)) for rank in range(pipeline))
    if _counts(run) and run.hybrid_layer_pattern is not None and run.hybrid_has_pipes:
        segments = run.hybrid_main_pattern.split("|")
        return tuple(tuple(len(segments[v * pipeline + rank]) for v in range(virtual)) for rank in range(pipeline))
    if (stated := stated_chunks(run)) is not None:
        return stated
    rows = [[_whole(count, virtual, "layers of a stage")] * virtual for count in ranks(run)]
    rows[0][0] -= bool(run.account_for_embedding_in_pipeline_split)
    rows[-1][-1] -= bool(run.account_for_loss_in_pipeline_split)
    if min(rows[0][0], rows[-1][-1]) < 0:
        raise NotKnown("a stage has no layer slot for the embedding or the loss")
    return tuple(tuple(row) for row in rows)


def ranks(run: Run) -> list[int]:
    """Layers by pipeline rank, including embedding and loss if they are counted."""
    pipeline, first, last = (
        run.pipeline_model_parallel_size,
        run.decoder_first_pipeline_num_layers,
        run.decoder_last_pipeline_num_layers,
    )
    if first is None and last is None:
        return [_whole(run.pipeline_num_layers, pipeline, "layers")] * pipeline
    middle = run.num_layers - (first or 0) - (last or 0)
    stages = pipeline - (first is not None) - (last is not None)
    if run.is_core(">=0.13") and pipeline == 1 and stages < 0 and middle:
        return [last]  # a single rank is both the first and the last stage; the number of the last stage applies
    if middle < 0 or stages < 0 or bool(middle) is not bool(stages):
        raise NotKnown("the layers between the first and last stage cannot be split evenly")
    each = _whole(middle, stages, "layers between the first and the last stage") if stages else 0
    return [*([first] if first is not None else []), *[each] * stages, *([last] if last is not None else [])]


def _layout(text: str) -> tuple[str, ...]:
    found = parse_layout(text)
    if found.strange or found.too_long:
        raise NotKnown("the pipeline layout is rejected")
    return found.stages


def _whole(number: int, parts: int, what: str) -> int:
    if parts < 1 or number % parts:
        raise NotKnown(f"{number} {what} are not divisible by {parts}")
    return number // parts


STEPS = (
    hybrid_pattern,
    hybrid_layers,
    encoder_layers,
    layout_counts,
    counted_layers,
    virtual_stages,
    point_to_point,
    layers_per_chunk,
)
