"""Configs and launches of unsupported trainers that share keys with a supported one."""

from __future__ import annotations

import pytest

import preflight

CONFIGS = {
    "llm-foundry": """
max_seq_len: 2048
global_seed: 17
model:
  name: mpt_causal_lm
  d_model: 2560
  max_seq_len: ${max_seq_len}
optimizer: {name: decoupled_adamw, lr: 1.6e-4}
seed: ${global_seed}
callbacks: {lr_monitor: {}}
""",
    "axolotl": """\
base_model: NousResearch/Meta-Llama-3-8B
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
dataset_prepared_path: last_run_prepared
output_dir: ./outputs/out
sequence_len: 4096
sample_packing: true
adapter: lora
lora_r: 32
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 1
optimizer: adamw_bnb_8bit
lr_scheduler: cosine
learning_rate: 0.0002
tensor_parallel_size: 2
context_parallel_size: 2
""",
    "alpaca_lora": """\
base_model: decapoda-research/llama-7b-hf
dataset: yahma/alpaca-cleaned
output_dir: ./lora-alpaca
batch_size: 128
micro_batch_size: 4
num_epochs: 3
learning_rate: 3e-4
""",
    "research": """\
model: gpt2
dataset: openwebtext
micro_batch_size: 8
global_batch_size: 256
lr: 6e-4
seed: 1337
output_dir: out
""",
    "research_mp": """\
model: qwen3
dataset: c4
micro_batch_size: 1
global_batch_size: 512
tensor_model_parallel_size: 4
pipeline_model_parallel_size: 2
lr: 1e-4
train_iters: 1000
weight_decay: 0.1
""",
    "litgpt_flat": """\
checkpoint_dir: checkpoints/meta-llama
out_dir: out/lora
precision: bf16-true
data:
  class_path: litgpt.data.Alpaca2k
train:
  global_batch_size: 16
  micro_batch_size: 2
  epochs: 4
  max_seq_length: 512
eval:
  interval: 100
""",
    "bridge_like": """\
model:
  name: gpt
  seq_length: 2048
train:
  train_iters: 1000
  global_batch_size: 256
optimizer:
  lr: 1e-4
dataset:
  path: data
tokenizer: gpt2
checkpoint:
  save: out
""",
    "bridge_like2": """\
model:
  context_parallel_size: 1
  seq_length: 4096
train:
  global_batch_size: 64
  train_iters: 10
scheduler:
  lr_decay_style: cosine
""",
    "llamafactory": """\
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
stage: sft
do_train: true
finetuning_type: lora
dataset: identity,alpaca_en_demo
template: llama3
cutoff_len: 2048
output_dir: saves/llama3-8b/lora/sft
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
num_train_epochs: 3.0
lr_scheduler_type: cosine
bf16: true
""",
    "nemo1": """\
name: megatron_gpt
trainer:
  devices: 8
  num_nodes: 2
  precision: bf16
  max_steps: 100000
exp_manager:
  name: megatron_gpt
model:
  mcore_gpt: True
  micro_batch_size: 4
  global_batch_size: 8
  tensor_model_parallel_size: 1
  pipeline_model_parallel_size: 1
  encoder_seq_length: 512
  hidden_size: 768
  num_layers: 12
  num_attention_heads: 12
  data:
    data_prefix: ???
""",
    "nemo_automodel": """\
recipe: TrainFinetuneRecipeForNextTokenPrediction
step_scheduler:
  global_batch_size: 64
  local_batch_size: 8
  max_steps: 100
dist_env:
  backend: nccl
model:
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained
  pretrained_model_name_or_path: meta-llama/Llama-3.2-1B
distributed:
  strategy: fsdp2
  tp_size: 1
dataset:
  _target_: nemo_automodel.components.datasets.llm.hellaswag.HellaSwag
""",
    "torchtitan": """\
model:
  name: llama3
  flavor: 8B
optimizer:
  name: AdamW
  lr: 3.0e-4
training:
  local_batch_size: 1
  seq_len: 8192
  steps: 1000
  dataset: c4
parallelism:
  tensor_parallel_degree: 8
""",
    "deepspeed": """\
train_batch_size: 256
train_micro_batch_size_per_gpu: 8
gradient_accumulation_steps: 4
zero_optimization: {stage: 3}
bf16: {enabled: true}
""",
    "gpt_neox": """\
{
  "pipe-parallel-size": 1,
  "model-parallel-size": 1,
  "num-layers": 12,
  "hidden-size": 768,
  "num-attention-heads": 12,
  "seq-length": 2048,
  "max-position-embeddings": 2048,
  "train_micro_batch_size_per_gpu": 4,
  "train-iters": 320000,
  "optimizer": {"type": "Adam", "params": {"lr": 0.0006}},
  "zero_optimization": {"stage": 1},
  "data-path": "data/mydata"
}
""",
    "trl_grpo": """\
model_name_or_path: Qwen/Qwen2-0.5B
dataset_name: x
num_generations: 8
max_completion_length: 1024
use_vllm: true
vllm_mode: colocate
steps_per_generation: 4
output_dir: out
per_device_train_batch_size: 8
micro_batch_size: 8
""",
    "roll_defaults": """\
defaults:
  - base_megatron.yaml
exp_name: x
rollout_batch_size: 8
""",
    "hydra_other": """\
defaults:
  - base.yaml
  - megatron_optim.yaml
  - _self_
trainer: {max_steps: 10}
""",
    "xtuner": """\
model: internlm2
dataset: alpaca
micro_batch_size: 1
global_batch_size: 16
pack_max_length: 4096
output_dir: work_dirs
sp_size: 1
""",
    "llm_foundry": """\
variables: {max_seq_len: 2048}
max_seq_len: 2048
model: {name: mpt_causal_lm, d_model: 768}
train_loader: {name: text, dataset: {local: ./my-copy-c4}}
optimizer: {name: decoupled_adamw, lr: 6.0e-4}
global_train_batch_size: 256
device_train_microbatch_size: 16
""",
    "torchtune": """\
output_dir: /tmp/torchtune
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer}
dataset: {_component_: torchtune.datasets.alpaca_dataset}
model: {_component_: torchtune.models.llama3_1.llama3_1_8b}
batch_size: 2
micro_batch_size: 2
epochs: 1
""",
    "nanotron": """\
general: {project: debug, run: tiny}
model:
  model_config: {hidden_size: 16, num_hidden_layers: 2}
parallelism: {dp: 2, pp: 2, tp: 2}
tokens: {micro_batch_size: 2, sequence_length: 256, train_steps: 15}
optimizer: {learning_rate_scheduler: {lr_decay_style: cosine}}
""",
    "openrlhf": """\
pretrain: OpenRLHF/Llama-3-8b-sft
reward_pretrain: OpenRLHF/Llama-3-8b-rm
save_path: ./ckpt
micro_train_batch_size: 8
train_batch_size: 128
micro_rollout_batch_size: 16
rollout_batch_size: 1024
dataset: OpenRLHF/prompt
micro_batch_size: 8
""",
    "areal": """\
experiment_name: gsm8k-grpo
trial_name: trial0
allocation_mode: sglang:d4p1t1+megatron:d4p1t1
cluster: {n_nodes: 1, n_gpus_per_node: 8}
actor:
  path: Qwen/Qwen2.5-1.5B
  mb_spec: {max_tokens_per_mb: 10240}
  megatron: {ddp: {grad_reduce_in_fp32: true}}
train_dataset: {batch_size: 256, path: openai/gsm8k}
""",
    "areal_fsdp": """\
cluster: {n_nodes: 1, n_gpus_per_node: 8}
rollout: {backend: "sglang:d4p1t1"}
actor: {backend: "fsdp:d4p1t1", path: Qwen/Qwen2.5-1.5B, megatron: {ddp: {grad_reduce_in_fp32: true}}}
train_dataset: {batch_size: 256, path: openai/gsm8k}
""",
    "skyrl": """\
trainer:
  strategy: megatron
  policy:
    model: {path: Qwen/Qwen2.5}
    megatron_config: {tensor_model_parallel_size: 2}
  micro_train_batch_size_per_gpu: 4
generator: {backend: vllm}
""",
    "flagscale_like": """\
experiment: {name: a, runner: slurm}
system: {gpus: 8}
model: {num_layers: 12, hidden_size: 768}
data: {path: x}
""",
    "own_policy": """\
policy:
  megatron_cfg: none
  lr: 1
""",
    "colossal": """\
model: llama
dataset: c4
micro_batch_size: 2
tp: 2
pp: 2
zero: 1
output_dir: ./out
max_length: 2048
""",
    "unsloth": """\
model: unsloth/llama-3
dataset: yahma/alpaca-cleaned
micro_batch_size: 2
max_length: 2048
lora_rank: 16
lora_alpha: 16
target_modules: [q_proj]
packing: false
output_dir: outputs
""",
    "speech": """\
seed: 1
output_dir: results/tts
dataset: librispeech
micro_batch_size: 16
warmup: 1000
num_train_epochs: 10
save_steps: 500
logging_steps: 10
eval_steps: 500
""",
    "fsdp_qlora": """\
model_id: meta-llama/Meta-Llama-3-70b
dataset: path
dataset_path: "."
max_seq_len: 3072
output_dir: ./llama-3-70b
micro_batch_size: 1
lr_scheduler_type: constant
tf32: true
""",
    "nnscaler": """\
compute_config:
  plan_ngpus: 1
  runtime_ngpus: 2
run_mode: run
pas_policy: dp
micro_batch_size: 1
seed: 1
model:
  type: tests.cli.common.MixedModule
optimizer:
  type: torch.optim.AdamW
  args: {lr: 0.0001}
dataset:
  type: tests.cli.common.SimpleDataset
""",
    "another mode": """\
run_mode: run
trainer: {type: Trainer}
optimizer: {type: AdamW}
lr_schedule: {type: CosineSchedule}
model: {arch: resnet50}
seed: 0
output_dir: out
""",
    "another mode, local": """\
run_mode: local
context: {device: cpu}
model: {name: bert}
optimizer: {name: adam}
callbacks: []
seed: 0
""",
    "a model by its module": """\
model: {type: mypkg.models.Gpt}
optimizer: {type: AdamW}
train_dataset: {type: C4}
lr_schedule: {type: cosine}
callbacks: []
seed: 1
""",
    "an optimizer by its module": """\
model: {arch: gpt}
optimizer: {type: torch.optim.SGD}
train_dataset: {path: data}
lr_schedule: {type: step}
metric: accuracy
""",
    "data by its module": """\
model: {arch: gpt}
optimizer: {type: SGD}
train_dataset: {type: datasets.wikitext.WikiText}
lr_schedule: {type: step}
callbacks: [checkpoint]
""",
    "a trainer by its module": """\
trainer: {type: lightning.pytorch.Trainer}
model: {arch: gpt}
optimizer: {type: SGD}
train_dataset: {path: data}
lr_schedule: {type: step}
""",
    "a mode of a robot": """\
run_mode: simulation
model: {arch: policy}
optimizer: {type: Adam}
train_dataset: {data_loader: episodes}
seed: 3
output_dir: out
""",
}
LAUNCHES = {
    "hydra_generic": "python train.py train.global_batch_size=64 optimizer.lr=1e-4",
    "hydra_generic2": "torchrun --nproc_per_node 8 train.py train.train_iters=100 logger.name=x optimizer.lr=1e-4",
    "hydra_generic3": "python main.py --config-file conf.yaml train.micro_batch_size=4",
    "slime_like": "python train.py --rollout-batch-size 64 --lr 1e-4 --env CartPole",
    "openrlhf": (
        "deepspeed --module openrlhf.cli.train_ppo_ray --pretrain x --micro_train_batch_size 8 "
        "--rollout_batch_size 1024"
    ),
    "alignment": (
        "accelerate launch --config_file recipes/zero3.yaml scripts/run_sft.py --config recipes/megatron-7b/sft.yaml"
    ),
    "cli": "python my/cli/train_dpo.py --config-name base",
    "axolotl": "accelerate launch -m axolotl.cli.train examples/openllama-3b/lora.yml",
    "litgpt": "litgpt finetune_lora meta-llama --train.global_batch_size 16 --train.micro_batch_size 2",
    "llamafactory": "FORCE_TORCHRUN=1 llamafactory-cli train examples/train_lora/llama3.yaml",
    "nemo": (
        "python examples/nlp/language_modeling/megatron_gpt_pretraining.py --config-path=conf "
        "--config-name=megatron_gpt_config trainer.devices=8 model.micro_batch_size=4 "
        "model.global_batch_size=64 model.tensor_model_parallel_size=2"
    ),
    "trl": "accelerate launch trl/scripts/sft.py --model_name_or_path x --micro_batch_size 2 --dataset_name y",
}
SWIFT = "model: Qwen/Qwen3-8B\ndataset: d\nmicro_batch_size: 1\nglobal_batch_size: 16\ntensor_model_parallel_size: 2\n"
OURS = {
    "MindFormers, with a slip in the mode": (
        "mindformers",
        "run_mode: finetun\ntrainer: {type: CausalLanguageModelingTrainer}\noptimizer: {type: AdamW}\n"
        "lr_schedule: {type: ConstantWarmUpLR}\ntrain_dataset: {data_loader: {type: MindDataset}}\nmodel: {arch: "
        "{type: LlamaForCausalLM}, model_config: {type: LlamaConfig}}\n",
    ),
    "MindFormers, with a mode that no release has": (
        "mindformers",
        "run_mode: run\nrunner_config: {epochs: 1, batch_size: 1}\nparallel_config: {data_parallel: 1}\n"
        "model: {arch: {type: LlamaForCausalLM}, model_config: {type: LlamaConfig}}\n",
    ),
    "ms-swift, by its tuner": ("ms-swift", f"{SWIFT}tuner_type: lora\n"),
    "ms-swift, by its reinforcement": ("ms-swift", f"{SWIFT}rlhf_type: grpo\n"),
    "ms-swift, by its split": ("ms-swift", f"{SWIFT}split_dataset_ratio: 0.01\n"),
    "ms-swift, by its comment": ("ms-swift", f"# megatron sft --config run.yaml\n{SWIFT}"),
    "Megatron-Bridge": (
        "megatron-bridge",
        "model: {tensor_model_parallel_size: 2, seq_length: 4096}\ntrain: {train_iters: 10, global_batch_size: 8}\n",
    ),
    "NeMo RL": ("nemo-rl", "defaults: base-megatron.yaml\npolicy: {model_name: m}\n"),
    "AReaL": (
        "areal",
        """\
cluster: {n_nodes: 1, n_gpus_per_node: 8}
actor:
  backend: "megatron:d4p2"
  path: Qwen/Qwen2.5-1.5B
train_dataset: {batch_size: 256, path: openai/gsm8k}
""",
    ),
    "Primus": (
        "primus",
        """\
work_group: ${PRIMUS_TEAM:amd}
user_name: ${PRIMUS_USER:root}
exp_name: ${PRIMUS_EXP_NAME:llama2_7B-pretrain}
workspace: ./output
modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: llama2_7B.yaml
    overrides:
      train_iters: 50
      micro_batch_size: 4
      global_batch_size: 256
      seq_length: 4096
      tensor_model_parallel_size: 1
      pipeline_model_parallel_size: 1
""",
    ),
    "NeMo RL, over a parent alone": ("nemo-rl", "defaults: base-megatron.yaml\ndata_plane: {enabled: true}\n"),
}
STARTS = {
    "Megatron-Bridge": ("megatron-bridge", "torchrun my.py train.train_iters=10 model.tensor_model_parallel_size=2"),
    "Megatron-Bridge, with its file": (
        "megatron-bridge",
        "torchrun my.py --config-file c.yaml train.global_batch_size=8 optimizer.lr=1e-4",
    ),
    "slime": ("slime", "python train.py --rollout-batch-size 8 --n-samples-per-prompt 8 --num-rollout 3"),
    "MindSpeed-RL": ("mindspeed-rl", "python cli/train_grpo.py --config-name grpo_qwen25_7b_A3"),
    "MindSpeed-RL, by its sections": (
        "mindspeed-rl",
        "python cli/train_ppo.py --config-name mine actor_config.lr=1e-6",
    ),
}


def target_of(text: str, name: str, target: str | None = None) -> str | None:
    report = preflight.check_text(text, name=name, target=target)
    assert bool(report.jobs) is not bool(report.skipped)
    return report.jobs[0].target.framework if report.jobs else None


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_of_another_trainer_is_left_alone(name: str) -> None:
    assert target_of(CONFIGS[name], "run.yaml") is None


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_launch_of_another_trainer_is_left_alone(name: str) -> None:
    assert target_of(LAUNCHES[name] + "\n", "run.sh") is None


@pytest.mark.parametrize("name", OURS)
def test_a_config_with_what_only_its_trainer_has_is_read(name: str) -> None:
    framework, text = OURS[name]
    assert target_of(text, "run.yaml") == framework


@pytest.mark.parametrize("name", STARTS)
def test_a_launch_with_what_only_its_trainer_has_is_read(name: str) -> None:
    framework, text = STARTS[name]
    assert target_of(text + "\n", "run.sh") == framework


def test_a_config_that_somebody_says_is_of_a_trainer_needs_no_sign() -> None:
    assert target_of(SWIFT, "run.yaml") is None
    assert target_of(SWIFT, "run.yaml", target="ms-swift") == "ms-swift"
