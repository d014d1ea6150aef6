"""Random scripts made of common constructs, for comparison with bash."""

from __future__ import annotations

from random import Random

NAMES = ("A", "B", "C")
PLAIN = ("x", "--f", '"a b"', "'c d'", "a\\ b", "${L[@]}", '"${L[@]}"')
USES = (
    "${N}",
    '"${N}"',
    "$N",
    '"pre-${N}-post"',
    "${N:-d e}",
    '"${N:-d e}"',
    "${N%b}",
    "$((3+4*2))",
    "--k=$N/y",
    "${N}_$N.c",
)
VALUES = ("1", "x", "yz", '"m n"', '"--p 1 --q 2"', '""', '"$A $B"', '"  s  "')


def word(random: Random) -> str:
    return random.choice(PLAIN) if random.random() < 0.4 else random.choice(USES).replace("N", random.choice(NAMES))


def words(random: Random, most: int) -> str:
    return " ".join(word(random) for _ in range(random.randrange(most)))


def statement(random: Random, depth: int = 0) -> str:
    name, other = random.choice(NAMES), random.choice(NAMES)
    simple = [
        f"{name}={random.choice(VALUES)}",
        f"{name}={word(random)}",
        f'{name}+="{random.choice((" w", "t"))}"',
        f"L=({words(random, 4)})",
        f"L+=({word(random)})",
        f'[ -n "${name}" ] && {other}=set',
        f"torchrun t.py {words(random, 6)}",
        f"torchrun u.py --a {word(random)} | tee log",
    ]
    if depth > 1 or random.random() < 0.7:
        return random.choice(simple)
    inner = statement(random, depth + 1)
    return random.choice(
        [
            f'if [ "${name}" = x ]; then\n{inner}\nelse\n{statement(random, depth + 1)}\nfi',
            f"for {name} in {word(random)} {word(random)}; do\n{inner}\ndone",
            f'f() {{ torchrun f.py "$1" $2; {other}=done; }}\nf {word(random)} {word(random)}',
            f"case ${name} in\n  x|1) {inner};;\n  *) {other}=star;;\nesac",
            f"( {inner} )",
        ]
    )


def script(seed: int) -> str:
    random = Random(seed)
    body = "\n".join(statement(random) for _ in range(random.randrange(3, 12)))
    return f'A=1\nB=x\nC="p q"\nL=(--l "m n")\n{body}\ntorchrun end.py $A "$B" ${{C}} "${{L[@]}}"\n'
