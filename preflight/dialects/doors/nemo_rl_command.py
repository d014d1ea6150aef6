"""Launches of NeMo RL: `run_grpo.py --config x.yaml key=value`, Hydra's overrides over a config with its parents."""

from __future__ import annotations

import os

from preflight.dialects import Surroundings
from preflight.dialects.doors.door import Door
from preflight.dialects.doors.unread import unread
from preflight.dialects.megatron.namespace import Run, derives
from preflight.loaders.composition.inheritance import Inherited, Open, inherited
from preflight.loaders.composition.merging import mapping
from preflight.loaders.composition.overrides import Override, Refused, read_override
from preflight.loaders.document import Document, Problem, Word
from preflight.source.checkout_root import checkout_root

CONFIG = "--config"
DEFAULTS = {
    "run_distillation.py": "configs/distillation_math.yaml",
    "run_dpo.py": "configs/dpo.yaml",
    "run_grpo.py": "configs/grpo_math_1B.yaml",
    "run_grpo_sliding_puzzle.py": "configs/grpo_sliding_puzzle.yaml",
    "run_ppo.py": "configs/ppo_math_1B.yaml",
    "run_rm.py": "configs/rm.yaml",
    "run_sft.py": "configs/sft.yaml",
    "run_vlm_grpo.py": "configs/vlm_grpo_3B.yaml",
}
"""The config of a script that is given none, beside it."""
BYPASS = "NRL_IGNORE_TP_ACCURACY_CHECK"
"""The variable that turns a check off."""


def composed(document: Document, opened: Open) -> Inherited:
    """A config over its parents: the document itself, or the one that a launch names."""
    config = document if document.launch is None else _named(document, opened)
    return (
        inherited(config, opened) if config is not None else Inherited(mapping((), document.start), (), ("the config",))
    )


def overrides(document: Document) -> tuple[Override, ...]:
    """The overrides of a launch."""
    return tuple(one for word in _words(document) if (one := read_override(word)) is not None)


def open_to_more(document: Document) -> bool:
    """Whether a launch may have overrides that are not known."""
    words = _words(document)
    before = ("", *(word.text for word in words))
    any_word = (
        word.text is None and not (word.pieces and word.pieces[0].text)
        for option, word in zip(before, words, strict=False)
        if option != CONFIG
    )
    return document.launch is not None and (document.launch.open or any(any_word))


def refusals(door: Door, refused: tuple[Refused, ...], surroundings: Surroundings) -> list[Problem]:
    """Keys that the config does not have: a command may set none of them. A release that is not read may have a key,
    unless it is a slip of another."""
    stated = surroundings.request.target is not None
    unknown = [one.override for one in refused if one.kind == "unknown"]
    found = [unread(door._replace(unread="refused"), one.key, one.key_span) for one in unknown]
    return [one._replace(harmless=one.harmless or (one.fix is None and not stated)) for one in found]


@derives()
def exempt(run: Run) -> None:
    """The check of batches under tensor parallelism is turned off."""
    run.derive("batches_are_checked", False)


def exempting(document: Document, door: Door) -> Door:
    """The door as the environment of a launch makes it."""
    said = document.launch.environment.get(BYPASS) if document.launch is not None else None
    return door if said is None or said.text == "" else door._replace(after=(*door.after, exempt))


def _words(document: Document) -> tuple[Word, ...]:
    return document.launch.words if document.launch is not None else ()


def _named(document: Document, opened: Open) -> Document | None:
    """The config of a launch, from the top of the checkout, where such runs are started, or from the script."""
    name, path = _config(document), document.source.path
    if not name or path is None:
        return None
    folder = os.path.dirname(os.path.realpath(path))
    from_top = os.path.relpath(os.path.join(checkout_root(path), name), folder)
    found = opened(document, from_top) or opened(document, name)
    return found if found is not None and found.tree is not None and found.tree.kind == "mapping" else None


def _config(document: Document) -> str:
    """The path of the config that a launch names, or that its script takes by itself; "" for an unknown one."""
    assert document.launch is not None
    words, entry = _words(document), _known(document.launch.entry)
    texts = [word.text or "" for word in words]
    joined = [text.partition("=")[2] for text in texts if text.startswith(f"{CONFIG}=")]
    if CONFIG in texts or joined:
        return joined[0] if joined else "".join(_known(word) for word in words[texts.index(CONFIG) + 1 :][:1])
    default = DEFAULTS.get(os.path.basename(entry))
    return os.path.join(os.path.dirname(entry), default) if default is not None else ""


def _known(word: Word) -> str:
    """A path; of one behind a folder that is not known, what is behind it."""
    last = word.pieces[-1].text if word.pieces else None
    return word.text or (last.lstrip("/") if last is not None and last.startswith("/") else "")
