"""The messages about checkpoints that do not match the run, are cut off, or are not at their place."""

from __future__ import annotations

from preflight.logs.cause_types import Cause, Signature

C = Cause
OF_CHECKPOINTS: tuple[Signature, ...] = (
    Signature(
        "class-not-there", C.CHECKPOINT,
        r"Can't get attribute '\w+' on <module",
        "a pickled file names a class that this program does not have, because another version wrote it",
        "load it with the version that wrote it, or save it again with this version",
    ),
    Signature(
        "tensor-not-saved", C.CHECKPOINT,
        r"KeyError: [\"']*(?:decoder|embedding|output_layer)\.[\w.]+ from model not in state dict",
        "the network has a tensor that the checkpoint lacks",
        "norms, biases, positions, experts and tied embeddings must match those of the checkpoint: `preflight check "
        "--site` compares them",
    ),
    Signature(
        "other-weight-names", C.ENVIRONMENT,
        r"KeyError: '?\"?(?:\w{1,40}\.){0,3}decoder\.layers\.(?:\w{1,40}\.){1,12}(?:weight|bias)\b",
        "a weight table does not contain Megatron's name for a weight",
        "install compatible versions of Megatron and the code that converts or patches it; a checkpoint converted "
        "for another version is another possible cause",
    ),
    Signature(
        "no-such-weight", C.CHECKPOINT,
        r"KeyError: '?\"?(?:\w{1,40}\.){1,12}(?:weight|bias)\b",
        "a table of weights does not contain a name that the program needs",
        "the checkpoint and the program name the key differently, or one of them lacks it; use matching versions, "
        "the format that the program saves, or a checkpoint that was converted for it",
    ),
    Signature(
        "no-tracker", C.ENVIRONMENT,
        r"could not find the metadata file|will not load any checkpoints and will start from random",
        "no tracker file is in the folder of --load",
        "name a folder with latest_checkpointed_iteration.txt; without --exit-on-missing-checkpoint the run starts "
        "from random "
        "weights, without an error",
        weak=True,
    ),
    Signature(
        "optimizer-not-saved", C.CHECKPOINT,
        r"KeyError: '?[\"']?optimizer|state_dict\[[\"']optimizer[\"']\].*KeyError"
        r"|Unable to load optimizer from checkpoint",
        "the checkpoint has no optimizer state",
        "resume with --no-load-optim, or from a checkpoint that was saved with it",
    ),
    Signature(
        "flattened-range", C.UPSTREAM,
        r"flattened_range is not supported",
        "Megatron core 0.17 and later reject optimizer states that were saved as fully_sharded_model_space",
        "save in the form fully_reshardable (--dist-ckpt-optim-fully-reshardable), or load with core 0.16",
    ),
    Signature(
        "weights-only", C.UPSTREAM,
        r"Weights only load fail|WeightsUnpickler error|weights_only.*Unsupported|Unsupported global: GLOBAL",
        (
            "the checkpoint holds classes that this release does not unpickle: since core 0.14, only listed classes "
            "are unpickled"
        ),
        "load it with the release that wrote it and save it again, or add the class to torch.serialization's "
        "safe globals",
    ),
    Signature(
        "checkpoint-mismatch", C.CHECKPOINT,
        r"Global shape mismatch|size mismatch for|Error\(s\) in loading state_dict|Missing key\(s\) in state_dict"
        r"|[Ss]ize mismatch between saved|value from checkpoint \("
        r"|Shape mismatch.*(?:loaded|checkpoint)|[Ss]hape mismatch for megatron param"
        r"|is not equal to the input argument value"
        r"|load_param_into_net|net_param.*shape",
        "the checkpoint and the model do not match",
        "the sizes of the model must match those of the checkpoint: `preflight check --site` compares them, and "
        "`preflight show` prints those of the config",
    ),
    Signature(
        "checkpoint-keys", C.CHECKPOINT,
        r"Unexpected key(?!word)|[Uu]nsupported keys? in checkpoint"
        r"|not found in param_group|is not in ckpt|Missing key in checkpoint|KeyError: MetadataIndex\("
        r"|Invalid access pattern|ShardedObjects? (?:is|are) missing"
        r"|is in the state_dict but|[Dd]ifferent dict keys encountered in `apply_factory_merges`",
        "the checkpoint and the program have different keys",
        "the checkpoint may be of another model or release, or its state may be saved in one format and "
            "loaded in another: `preflight check --site` compares its keys with those of the model",
    ),
    Signature(
        "checkpoint-read", C.CHECKPOINT,
        r"Checkpoint(?:ing)?Exception|dist_checkpointing\.load\(sharded_state_dict|_load_base_checkpoint"
        r"|checkpoint = dist_checkpointing\.load|validate_sharding_integrity|torch\.load.*failed",
        "it died while a checkpoint was loaded or saved",
        "the sizes of the model must match those of the checkpoint: `preflight check --site` compares them, and "
        "`preflight show` prints those of the config",
        weak=True,
    ),
    Signature(
        "shared-tensors", C.CHECKPOINT,
        r"weights trying to be saved contained shared|tensors share memory",
        "tensors that share memory cannot be saved in this format",
        "tie them in the model's own configuration, save one of them, or save without safetensors",
    ),
    Signature(
        "missing-checkpoint", C.CHECKPOINT,
        r"(?:FileNotFoundError|No such file).*(?:common\.pt|\.metadata\b|metadata\.json"
        r"|latest_checkpointed|model_optim_rng|\.distcp|\.safetensors|\.ckpt|pytorch_model)|Checkpoint path not found",
        "a file of the checkpoint is missing",
        "look at the folder from every node; each node reads the checkpoint's metadata, so the folder must be shared",
    ),
    Signature(
        "checkpoint-not-found", C.CHECKPOINT,
        r"Checkpoint not found for|could not find the checkpoint file",
        "a file of the checkpoint is missing",
        (
            "look at the folder from every node; some programs only warn about the missing file and start from "
            "random weights"
        ),
        weak=True,
    ),
    Signature(
        "broken-checkpoint", C.CHECKPOINT,
        r"PytorchStreamReader failed|HeaderTooLarge|InvalidHeaderDeserialization"
        r"|SafetensorError(?!: Error while serializing)"
        r"|MetadataIncompleteBuffer|invalid load key"
        r"|Ran out of input|No checkpoint could be resumed|EOFError: Ran out|pickle data was truncated"
        r"|UnpicklingError|corrupt file\?|[Tt]he file might be corrupted|storage has wrong byte size",
        "a checkpoint file is truncated, or is not a checkpoint",
        (
            "its last save may not have finished, so resume from the checkpoint before it; a Git LFS pointer is not a "
            "checkpoint either"
        ),
    ),
)  # fmt: skip
"""In the order in which they are looked for: the first that matches decides."""
