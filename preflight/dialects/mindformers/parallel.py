"""Degrees, modes and batch sizes as the trainer resolves them: resets, and the factors of the global batch."""

from __future__ import annotations

from preflight.dialects.mindformers.namespace import TRAINING, Run
from preflight.dialects.mindformers.release_tables import read_at
from preflight.loaders.document import Unknown
from preflight.run.versions import matches
from preflight.source.hints import Any
from preflight.source.word import NO_WORLD_SIZE

MODES: dict[object, str] = {
    "DATA_PARALLEL": "data_parallel",
    "SEMI_AUTO_PARALLEL": "semi_auto_parallel",
    "AUTO_PARALLEL": "auto_parallel",
    "HYBRID_PARALLEL": "hybrid_parallel",
    "STAND_ALONE": "stand_alone",
    "MANUAL_PARALLEL": "stand_alone",
    0: "data_parallel",
    1: "semi_auto_parallel",
    2: "auto_parallel",
    3: "hybrid_parallel",
}
AUTOMATIC = ("semi_auto_parallel", "auto_parallel")
_TRAINER = "mindformers/trainer/base_trainer.py"
_RESET = {"1.0.0": 228, "1.2.0": 234, "1.3.2": 265, "1.5.0": 262, "1.7.0": 278, "2.1.0": 291}
_ACCUMULATION = {"1.0.0": 250, "1.2.0": 256, "1.3.2": 286, "1.5.0": 290, "1.7.0": 306, "2.1.0": 319}
_DEGREES = ("data_parallel", "model_parallel", "pipeline_stage", "micro_batch_num")
_LATER = {"context_parallel": 1, "expert_parallel": 1, "use_seq_parallel": False}
"""Other settings that are reset since 1.6, and their new values; sequence parallelism since 1.8."""
_VOCABULARY = "parallel_config.vocab_emb_dp"
_STEPS = "runner_config.gradient_accumulation_steps"
_BATCH = ("runner_config.batch_size", "parallel_config.data_parallel", "micro_batch_interleave_num")


def derive_parallel(run: Run, world: int | None) -> None:
    """Mode, resets, pipeline switches and batch."""
    run.derive("kind", run.kind)
    run.derive(
        "training",
        run.raw("run_mode") in TRAINING if run.value("run_mode").known else Unknown("run_mode is not known"),
        of="run_mode",
    )
    run.derive("parallel_mode", _mode(run), of="parallel.parallel_mode" if run.true("use_parallel") else "use_parallel")
    run.derive("world_size", Unknown(NO_WORLD_SIZE) if world is None else world)
    mode = run.raw("parallel_mode")
    if isinstance(mode, Unknown):
        if not (run.value("use_parallel").known and run.value("parallel.parallel_mode").known):  # else it is refused
            _lose(run, mode)
        return
    where = f"{_TRAINER}:{_RESET[read_at(run.table.version)]}"
    new, purpose = matches(run.table.version, ">=1.6"), run.raw("run_mode")
    if mode not in AUTOMATIC and new and isinstance(purpose, Unknown):
        _lose(run, purpose)
    elif mode not in AUTOMATIC and not (new and purpose == "predict"):
        cause = "use_parallel is False" if mode == "stand_alone" else f"parallel_mode is {mode}"
        for name in _DEGREES:
            run.switch(f"parallel_config.{name}", 1, cause, where)
        if new:
            later = (
                _LATER
                if matches(run.table.version, ">=1.8")
                else {name: 1 for name in ("context_parallel", "expert_parallel")}
            )
            for name, after in later.items():
                run.switch(f"parallel_config.{name}", after, cause, where)
    _pipeline(run, mode)
    _accumulation(run, mode)
    run.derive("ulysses_degree", _ulysses(run))
    run.derive("global_batch_size", _global_batch(run, mode, world))


def _lose(run: Run, because: Unknown) -> None:
    """Values that depend on the mode are unknown without it: degrees may count as 1, and interleaving may be off."""
    for name in (*_DEGREES, *_LATER):
        if run.raw(f"parallel_config.{name}") != _LATER.get(name, 1):
            run.lose(f"parallel_config.{name}", because.because)
    for name in (
        "pipeline_interleave",
        "ulysses_degree",
        "global_batch_size",
        *((_STEPS,) if run.raw(_STEPS) != 1 else ()),
    ):
        run.lose(name, because.because)
    if _VOCABULARY in run.written:
        run.lose(_VOCABULARY, because.because)


def _mode(run: Run) -> str | Unknown:
    on = run.true("use_parallel")
    if on is None:
        return Unknown("use_parallel is not known")
    if not on:
        return "stand_alone"
    raw = run.raw("parallel.parallel_mode")
    if raw is None and "parallel.parallel_mode" not in run.written:
        return MODES[0]
    return (
        MODES.get(raw, Unknown("parallel_mode is not one of the modes"))
        if isinstance(raw, (str, int))
        else Unknown("parallel_mode is not one of the modes")
    )


def _pipeline(run: Run, mode: str) -> None:
    """Interleaving has two switches, which only work together."""
    asked = run.raw("parallel.pipeline_config.pipeline_interleave")
    on = (
        bool(asked) and mode != "stand_alone"
        if not isinstance(asked, Unknown)
        else Unknown("pipeline_interleave is not known")
    )
    run.derive("pipeline_interleave", on, of="parallel.pipeline_config.pipeline_interleave")
    pipeline = run.number("parallel_config.pipeline_stage")
    if not run.value("parallel_config.pipeline_stage").known and _VOCABULARY in run.written:
        run.lose(_VOCABULARY, "pipeline_stage is not known")
    elif pipeline is not None and pipeline > 1 and _VOCABULARY in run.written:
        run.switch(_VOCABULARY, False, "pipeline_stage is more than 1", "mindformers/core/parallel_config.py:62")


def _accumulation(run: Run, mode: str) -> None:
    """gradient_accumulation_steps counts only without a pipeline, and only in the automatic modes."""
    name, pipeline = _STEPS, run.number("parallel_config.pipeline_stage")
    where = f"{_TRAINER}:{_ACCUMULATION[read_at(run.table.version)]}"
    if run.raw(name) is None:
        run.derive(name, 1, "null")
    steps = run.number(name)
    if steps is None or steps <= 1:
        return
    if mode not in AUTOMATIC:
        run.switch(name, 1, f"it does not count in {mode} mode", where)
    elif pipeline is not None and pipeline > 1:
        run.switch(name, 1, "with a pipeline only micro_batch_num counts", where)


def _ulysses(run: Run) -> int | Unknown:
    """The number of ranks over which Ulysses distributes the heads."""
    size, algorithm = run.raw("parallel_config.context_parallel"), run.raw("parallel_config.context_parallel_algo")
    if isinstance(size, Unknown) or isinstance(algorithm, Unknown) or not isinstance(size, int):
        return Unknown("context_parallel is not usable")
    if size == 1 or algorithm in (None, "colossalai_cp"):
        return 1
    degree = size if algorithm == "ulysses_cp" else run.raw("parallel_config.ulysses_degree_in_cp")
    return degree if isinstance(degree, int) else Unknown("ulysses_degree_in_cp is not usable")


def _global_batch(run: Run, mode: str, world: int | None) -> Any:
    """Samples per step; derived from the layout, never an input."""
    numbers = [run.number(name) for name in _BATCH]
    pipeline, micro = run.number("parallel_config.pipeline_stage"), run.number("parallel_config.micro_batch_num")
    steps = run.number(_STEPS)
    batch = numbers[0]
    if batch is None or pipeline is None or micro is None or steps is None:
        return Unknown("a factor of the global batch is not a whole number")
    if mode not in AUTOMATIC:
        ranks = 1 if world is None and mode == "stand_alone" else world
        return Unknown(NO_WORLD_SIZE) if ranks is None else batch * ranks * steps
    if numbers[1] is None or numbers[2] is None:
        return Unknown("a factor of the global batch is not a whole number")
    return batch * numbers[1] * numbers[2] * (micro if pipeline > 1 else steps)
