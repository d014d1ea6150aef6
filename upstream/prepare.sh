#!/usr/bin/env bash
# Puts preflight, a bare Python for the frameworks' parsers, their repositories and the described wheels beside a checkout.
set -euo pipefail
pip install --quiet -e '.[layouts]' # numpy, without which the source of MindFormers decides no run
python -m venv ../parsers
../parsers/bin/pip install --quiet "$(grep --only-matching '^packaging==[0-9.]*' upstream/requirements.txt)"
mkdir -p "$PREFLIGHT_UPSTREAM/wheels"
for repository in NVIDIA/Megatron-LM Ascend/MindSpeed Ascend/MindSpeed-LLM mindspore-lab/mindformers verl-project/verl \
  modelscope/ms-swift THUDM/slime NVIDIA-NeMo/RL NVIDIA-NeMo/Megatron-Bridge AMD-AGI/Primus alibaba/ROLL \
  NovaSky-AI/SkyRL inclusionAI/AReaL FlagOpen/FlagScale mindspore-lab/mindrlhf Ascend/MindSpeed-MM Ascend/MindSpeed-RL; do
  git clone --quiet --bare "https://github.com/$repository" "$PREFLIGHT_UPSTREAM/${repository#*/}.git"
done
for wheel in $(grep --only-matching --no-filename 'mindformers-[0-9.]*-py3' schemas/mindformers/releases.json | sort --unique); do
  version=${wheel#mindformers-}
  pip download --quiet --no-deps --dest "$PREFLIGHT_UPSTREAM/wheels" "mindformers==${version%-py3}"
done
