"""Runs with one invalid setting: null, a list, a mapping, text, a strange number."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import yaml

from preflight.testing import Case

ODD: tuple[Any, ...] = (None, [], {}, "x", 0, -1, 1.5, True, [None], [1, "x"], {"a": None}, [{"type": None}])
GRAPH = """
run_mode: train
use_parallel: True
load_checkpoint: ''
trainer: {type: CausalLanguageModelingTrainer, model_name: m}
runner_config: {epochs: 2, batch_size: 1, gradient_accumulation_steps: 1}
context: {mode: 0, device_target: Ascend, max_device_memory: 58GB}
parallel:
  parallel_mode: 1
  full_batch: False
  dataset_strategy: [[2, 1]]
  pipeline_config: {pipeline_interleave: True, pipeline_scheduler: 1f1b}
  parallel_optimizer_config: {gradient_accumulation_shard: False}
parallel_config: {data_parallel: 2, model_parallel: 2, pipeline_stage: 2, micro_batch_num: 4, use_seq_parallel: True}
moe_config: {expert_num: 1}
train_dataset: {data_loader: {type: MindDataset, dataset_dir: d, shuffle: True}, input_columns: [input_ids],
  batch_size: 1}
optimizer: {type: AdamW, learning_rate: 1.0e-5}
lr_schedule: {type: CosineWithWarmUpLR, learning_rate: 1.0e-5, total_steps: -1}
runner_wrapper: {type: MFTrainOneStepCell, use_clip_grad: True}
callbacks: [{type: CheckpointMonitor, prefix: p, checkpoint_format: safetensors, remove_redundancy: False}]
recompute_config:
  recompute: [1, 1]
  select_recompute: {'feed_forward\\.mul': [1, 1]}
  select_comm_recompute: {'.*\\.norm': True}
  select_recompute_exclude: {'add': [0, 1]}
swap_config: {swap: False, layer_swap: [{layers: [1], backward_prefetch: 1}], op_swap: [{op_name: 'feed_forward\\.mul',
  layers: [2], backward_prefetch: 1}]}
"""
LLAMA = (
    "model: {arch: {type: LlamaForCausalLM}, model_config: {type: LlamaConfig, num_layers: 8, num_heads: 8, "
    "hidden_size: 512, vocab_size: 1024, seq_length: 512, offset: [0, 0], pp_interleave_num: 1, "
    "pet_config: {pet_type: lora, lora_rank: 8, target_modules: '.*wq|.*wk'}}}"
)
MIXTURE = """
use_legacy: False
model: {model_config: {model_type: deepseek_v3, architectures: [DeepseekV3ForCausalLM], num_hidden_layers: 8,
  num_attention_heads: 8, hidden_size: 512, vocab_size: 1024,
  seq_length: 512, n_routed_experts: 8, num_experts_per_tok: 4, n_group: 4, topk_group: 2, first_k_dense_replace: 1,
    moe_grouped_gemm: True, num_nextn_predict_layers: 1, offset: [0, 0]}}
"""
PYNATIVE = """
training: {local_batch_size: 1, global_batch_size: 16, steps: 10}
parallelism: {tensor_parallel: 2, pipeline_parallel: 2, context_parallel: 1, sequence_parallel: True,
  expert_parallel: 2}
recompute: {mode: full, full_recompute_layer: ['0-1'], selective_recompute_layer: [2]}
swap: {enable: False, layer_swap: [{layers: [1], backward_prefetch: 1}]}
optimizer: {type: AdamW, weight_decay: 0.01, betas: [0.9, 0.95]}
lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1.0e-5, warmup_ratio: 0.1}
train_dataset: {dataloader: {type: HFDataLoader, path: d, handler: [{type: h}]}}
callbacks: [{type: CheckpointCallback, save_interval: 10}]
lora: {target_modules: 'wq', rank: 8}
model: {model_type: deepseek_v3, architectures: DeepseekV3ForCausalLM, num_hidden_layers: 16, num_attention_heads: 8,
  hidden_size: 512, vocab_size: 1024, seq_length: 4096,
  n_routed_experts: 8, num_experts_per_tok: 4, n_group: 4, topk_group: 2, first_k_dense_replace: 1, q_lora_rank: 64,
    kv_lora_rank: 64}
"""
CONFIGS = {"mindformers@1.5.0": GRAPH + LLAMA, "mindformers@2.1.0": GRAPH + MIXTURE, "pynative@2.1.0": PYNATIVE}


def odd(name: str) -> Iterator[Case]:
    """Every run that differs from a config in one setting, and the config itself."""
    whole = yaml.safe_load(CONFIGS[name])
    target = f"mindformers@{name.partition('@')[2]}"
    yield Case(name="", text=CONFIGS[name], devices=8, target=target)
    for path in _paths(whole):
        for value in (*ODD, _gone):
            changed = copy.deepcopy(whole)
            inner = changed
            for part in path[:-1]:
                inner = inner[part]
            if value is _gone:
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
            yield Case(name=".".join(map(str, path)), text=yaml.safe_dump(changed), devices=8, target=target)


_gone = object()


def _paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    below = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for part, value in below:
        yield (*path, part)
        yield from _paths(value, (*path, part))
