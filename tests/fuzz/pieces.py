"""The parts of generated texts: those that are significant to the readers of YAML, shell, arithmetic and settings."""

from __future__ import annotations

from .choices import Choices


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split("¦"))


YAML = _split(
    "a¦b¦<<¦1¦0x1F¦0o17¦1_0¦1e5¦1:30¦2001-12-14¦~¦yes¦.inf¦.nan¦é¦\u2028¦\t¦ ¦  ¦\n¦\n  ¦\n"
    "- ¦: ¦:¦- ¦? ¦, ¦[¦]¦{¦}¦&a ¦*a¦&b ¦*b¦"
    "!!int ¦!!str ¦!!binary ¦!!float ¦!!timestamp ¦!x ¦#c¦'¦\"¦|\n ¦>-\n ¦---\n¦...\n¦%YAML 1.1\n¦\\¦\\x41¦\\ud800¦\r\n"
    "¦\r¦\ufeff¦"
    "<<: *a\n¦a: 1\n¦a: &a {b: 1}\n¦# preflight: ignore[x] y\n¦parallel_config:\n"
    "¦0b1¦0.¦1.e¦-¦=¦@¦`¦''¦\"\"¦190:20:30¦1__0¦0x¦+¦-.inf¦"
    "0_x"
)
SHELL = _split(
    "torchrun ¦pretrain_gpt.py ¦$A¦${A[@]}¦${B:-¦}¦A=¦A+=(¦)¦(¦\"¦'¦`¦$(¦$((¦))¦\\\n¦\n"
    "¦ ¦;¦|¦&&¦if [ $A ]; then ¦fi¦for x in 1 2; do ¦"
    "done¦while true; do ¦case $A in ¦esac¦a) ¦;;¦<<EOF\n¦EOF\n"
    '¦f() { ¦f ¦{ ¦eval ¦bash -c ¦set -- ¦"$@"¦shift¦#SBATCH -N ¦'
    "#SBATCH --nodes=¦2¦--num-layers ¦=¦# c\n¦[[ ¦ ]]¦((¦${#¦${!¦%¦%%¦##¦/¦//¦^^¦,,¦é¦\r\n"
    "¦\t¦srun -N¦msrun_launcher.sh ¦source x.sh¦"
    "export ¦local ¦$'¦<(¦**¦9**9**9¦1<<64¦{1..9}¦{1..999999999}¦$RANDOM¦${A:1:2}¦${A@Q}¦read -a A¦mapfile¦printf -v A "
    "¦declare -a ¦"
    "trap ¦exec ¦cd x¦$?¦?(a|¦*(a)¦@(b)¦until ¦select ¦function g ¦return ¦break¦continue¦getopts ¦&¦2>&1¦>x¦time ¦! "
    "¦coproc ¦let "
)
SUMS = _split("0¦1¦2¦3¦4¦5¦6¦7¦8¦9¦+¦-¦*¦/¦%¦**¦<<¦>>¦<¦>¦==¦!=¦&&¦||¦&¦|¦^¦~¦!¦?¦:¦(¦)¦A¦0x¦08¦ ¦$A")
TOML = _split(
    "[preflight]\n¦select = ¦ignore = ¦fail-on = ¦exclude = ¦[per-file.'*.yaml']\n¦[rules.device-count]\n"
    "¦world-size = ¦nodes = ¦a¦\n¦"
    "devices-per-node = ¦device = ¦target = ¦[[devices]]\n"
    "¦name = ¦memory-gib = ¦usable-gib = ¦required-version = ¦tflops = ¦"
    "per-node = "
    "¦[¦]¦{¦}¦,¦=¦.¦'x'¦\"y\"¦1¦-1¦0¦1e999¦inf¦nan¦true¦['*']¦[1]¦'[a'¦1979-05-27¦'error'¦'mindformers@1.5.0'¦'h100'¦"
    "[tool.preflight]\n¦[rules]\n¦allow-idle = ¦[per-file]\n"
    "¦aliases = ¦'''¦\\u00e9¦0x1¦999999999999999999999999999999¦#¦per-file = ¦"
    "rules = "
)


def pieces(choices: Choices, parts: tuple[str, ...]) -> str:
    """A text of pieces, sometimes with free text between them."""
    made = []
    while choices.left and len(made) < 200:
        made.append(choices.text(8) if choices.one_in(20) else choices.of(parts))
    return "".join(made)
