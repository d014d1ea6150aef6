"""Texts of any length made of one construct again and again: what a reader, a rule or a report may take too long over.

`SHAPES[name](size)` is the name of a file and a text of about that many characters.
"""

from __future__ import annotations

from collections.abc import Callable

from bounded import COMMAND, GRAPH

Shape = Callable[[int], tuple[str, str]]

LAUNCH = f"\n{COMMAND}\n"
MANIFEST = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\n"


def repeated(name: str, unit: str, before: str = "", after: str = "") -> Shape:
    """The same text again and again."""

    def made(size: int) -> tuple[str, str]:
        return name, before + unit * max(1, (size - len(before) - len(after)) // len(unit)) + after

    return made


def numbered(name: str, unit: str, before: str = "", after: str = "") -> Shape:
    """Again and again with a number in it: `%d`, as often as it stands there."""

    def made(size: int) -> tuple[str, str]:
        number, marks = max(1, (size - len(before) - len(after)) // (len(unit) + 3)), unit.count("%d")
        return name, before + "".join([unit % ((i,) * marks) for i in range(number)]) + after

    return made


def nested(name: str, opening: str, inner: str, closing: str, before: str = "", after: str = "") -> Shape:
    """A construct in itself."""

    def made(size: int) -> tuple[str, str]:
        depth = max(1, (size - len(before) - len(after)) // (len(opening) + len(closing)))
        return name, before + opening * depth + inner + closing * depth + after

    return made


def doubled(name: str, times: int, unit: str, before: str = "", after: str = "") -> Shape:
    """The same key or option so many times, over and over."""
    return repeated(name, unit * times, before, after)


YAML: dict[str, Shape] = {
    "duplicate keys": repeated("run.yaml", "seed: 1\n", GRAPH),
    "duplicate keys with comments": repeated("run.yaml", "seed: 1 # c\n", GRAPH),
    "duplicate keys of many kinds": numbered("run.yaml", "k%d: 1\nk%d: 2\n", GRAPH),
    "duplicate sections": repeated("run.yaml", "runner_config:\n  batch_size: 1\n", GRAPH),
    "duplicate keys in flow": repeated("run.yaml", "seed: 1, ", GRAPH + "runner_config: {", "batch_size: 1}\n"),
    "duplicate collections": repeated("run.yaml", "l: [1, 2, 3, 4, 5, 6, 7, 8]\n", GRAPH),
    "unknown keys": numbered("run.yaml", "unknown_key_%d: 1\n", GRAPH),
    "unknown keys of a section": numbered("run.yaml", "  data_paralel%d: 1\n", GRAPH + "runner_config:\n"),
    "misspelt keys": numbered("run.yaml", "%dparallel_config: 1\n", GRAPH),
    "long keys": numbered("run.yaml", "k" * 1000 + "%d: 1\n", GRAPH),
    "one long key": repeated("run.yaml", "k", GRAPH, ": 1\n"),
    "one long value": repeated("run.yaml", "v", GRAPH + "output_dir: ", "\n"),
    "one long quoted value": repeated("run.yaml", "v ", GRAPH + "output_dir: '", "'\n"),
    "one long escaped value": repeated("run.yaml", "\\x41", GRAPH + 'output_dir: "', '"\n'),
    "long value of a known key": repeated("run.yaml", "9", GRAPH + "runner_config: {batch_size: ", "}\n"),
    "comments": repeated("run.yaml", "# comment\n", GRAPH),
    "comments and a mark": repeated("run.yaml", "# comment\n", GRAPH + "seed: 1 # preflight: ignore[x] y\n"),
    "comments between entries": numbered("run.yaml", "# c\nk%d: 1\n", GRAPH),
    "suppressions": repeated("run.yaml", "# preflight: ignore[device-count] why\n", GRAPH),
    "suppressions of unknown rules": numbered("run.yaml", "# preflight: ignore[device-coun%d] why\n", GRAPH),
    "suppressions of many rules": repeated("run.yaml", "x-y,", GRAPH + "# preflight: ignore[", "] why\n"),
    "suppressed duplicates": repeated("run.yaml", "seed: 1 # preflight: ignore[duplicate-key] why\n", GRAPH),
    "empty lines": repeated("run.yaml", "\n", GRAPH),
    "blank lines": repeated("run.yaml", "  \n", GRAPH),
    "blanks": repeated("run.yaml", " ", GRAPH + "seed:", "1\n"),
    "sexagesimal": repeated("run.yaml", ":59", GRAPH + "seed: 1", "\n"),
    "sexagesimal float": repeated("run.yaml", ":59", GRAPH + "seed: 1", ".5\n"),
    "long integer": repeated("run.yaml", "9", GRAPH + "seed: ", "\n"),
    "underscores": repeated("run.yaml", "1_", GRAPH + "seed: ", "1\n"),
    "binary integer": repeated("run.yaml", "1", GRAPH + "seed: 0b", "\n"),
    "hexadecimal integer": repeated("run.yaml", "f", GRAPH + "seed: 0x", "\n"),
    "octal integer": repeated("run.yaml", "7", GRAPH + "seed: 0", "\n"),
    "many long integers": repeated("run.yaml", "- " + "9" * 4000 + "\n", GRAPH + "list:\n"),
    "long float": repeated("run.yaml", "9", GRAPH + "seed: 1.", "\n"),
    "near float": repeated("run.yaml", "9", GRAPH + "seed: 1", "x\n"),
    "near timestamp": repeated("run.yaml", " ", GRAPH + "seed: 2001-12-14", "x\n"),
    "tagged binary": repeated("run.yaml", "QUJD", GRAPH + "seed: !!binary ", "\n"),
    "tagged scalars": repeated("run.yaml", "- !!int 1\n", GRAPH + "list:\n"),
    "tagged integer": repeated("run.yaml", ":59", GRAPH + "seed: !!int 1", "\n"),
    "long tag": repeated("run.yaml", "x", GRAPH + "seed: !", " 1\n"),
    "escaped tag": repeated("run.yaml", "%41", GRAPH + "seed: !", " 1\n"),
    "tag directives": numbered("run.yaml", "%%TAG !t%d! tag:x,2000:\n", "", "---\n" + GRAPH),
    "anchors": numbered("run.yaml", "- &a%d x\n", GRAPH + "list:\n"),
    "one long anchor": repeated("run.yaml", "a", GRAPH + "seed: &", " 1\n"),
    "aliases": repeated("run.yaml", "- *a\n", GRAPH + "seed: &a 1\nlist:\n"),
    "aliases of a list": repeated("run.yaml", "- *a\n", GRAPH + "seed: &a [1, 2, 3, 4]\nlist:\n"),
    "merge keys": repeated("run.yaml", "<<: *a\n", GRAPH + "x: &a {b: 1}\n"),
    "merge lists": repeated("run.yaml", "*a, ", GRAPH + "x: &a {b: 1}\ny:\n  <<: [", "*a]\n"),
    "merged mappings": numbered(
        "run.yaml", "y%d: {<<: *a}\n", GRAPH + "x: &a {" + ", ".join(f"b{i}: 1" for i in range(200)) + "}\n"
    ),
    "chained merges": numbered("run.yaml", "  m%d: &m {<<: *m, b%d: 1}\n", GRAPH + "x: &m {a: 1}\nchain:\n"),
    "documents": repeated("run.yaml", "---\na: 1\n", GRAPH),
    "empty documents": repeated("run.yaml", "---\n", GRAPH),
    "document ends": repeated("run.yaml", "...\n", GRAPH),
    "flow lists": nested("run.yaml", "[", "1", "]", GRAPH + "list: ", "\n"),
    "flow mappings": nested("run.yaml", "{a: ", "1", "}", GRAPH + "list: ", "\n"),
    "many deep lists": repeated("run.yaml", "- " + "[" * 190 + "]" * 190 + "\n", GRAPH + "list:\n"),
    "unclosed lists": repeated("run.yaml", "[", GRAPH + "list: "),
    "unclosed quote": repeated("run.yaml", "a: 1\n", GRAPH + "x: '"),
    "block lists": repeated("run.yaml", "- ", GRAPH + "list:\n  ", "1\n"),
    "numbers": repeated("run.yaml", "- 1\n", GRAPH + "list:\n"),
    "numbers in flow": repeated("run.yaml", "1,", GRAPH + "list: [", "1]\n"),
    "known list of numbers": repeated("run.yaml", "1, ", GRAPH + "    offset: [", "1]\n"),
    "recompute list": repeated("run.yaml", "1, ", GRAPH + "recompute_config: {recompute: [", "1]}\n"),
    "select recompute": repeated(
        "run.yaml", "'a.b', ", GRAPH + "recompute_config: {recompute: False, select_recompute: [", "'x']}\n"
    ),
    "pipes in a pattern": repeated(
        "run.yaml", "a|", GRAPH + "recompute_config: {recompute: False, select_recompute: ['", "b']}\n"
    ),
    "callbacks": repeated("run.yaml", "  - type: MFLossMoniter\n", GRAPH + "callbacks:\n"),
    "callbacks of many types": numbered("run.yaml", "  - type: MFLossMoniter%d\n", GRAPH + "callbacks:\n"),
    "empty mappings": numbered("run.yaml", "k%d: {}\n", GRAPH),
    "null keys": repeated("run.yaml", "? \n", GRAPH + "x:\n"),
    "complex keys": repeated("run.yaml", "? [a]\n: 1\n", GRAPH + "x:\n"),
    "block scalars": numbered("run.yaml", "k%d: |\n  a\n\n", GRAPH),
    "one block scalar": repeated("run.yaml", "  a\n", GRAPH + "k: |\n"),
    "folded scalar": repeated("run.yaml", "  a\n", GRAPH + "k: >\n"),
    "hashes in a scalar": repeated("run.yaml", "  # a\n", GRAPH + "k: | # preflight: x\n"),
    "plain over lines": repeated("run.yaml", "  a\n", GRAPH + "k: a\n"),
    "carriage returns": repeated("run.yaml", "\r\n", GRAPH + "seed: 1 # preflight: x\r\n"),
    "single carriage returns": repeated("run.yaml", "\r", GRAPH),
    "line separators": repeated("run.yaml", "\u2028", GRAPH),
    "wide characters": repeated("run.yaml", "中", GRAPH + "output_dir: ", "\n"),
    "tabs": repeated("run.yaml", "\t", GRAPH + "seed: 1", "\n"),
    "colons": repeated("run.yaml", ":", GRAPH + "seed: a", "\n"),
    "braces of a template": repeated("run.yaml", "{{ a }}\n", GRAPH),
    "a broken line and many sections": numbered("run.yaml", "k%d: 1\n", GRAPH + "x: [\n"),
    "broken lines": repeated("run.yaml", "x: [\n", GRAPH),
    "base configs": repeated("run.yaml", "a/", f"base_config: {'x'}", "\n" + GRAPH),
    "manifest documents": repeated("run.yaml", "---\n" + MANIFEST, MANIFEST),
    "manifest containers": repeated(
        "run.yaml",
        "        - {name: c, command: [torchrun, pretrain_gpt.py]}\n",
        MANIFEST
        + "spec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: 1\n      template:\n       spec:\n        containers:\n",
    ),
    "manifest arguments": repeated(
        "run.yaml",
        "'--seed', ",
        MANIFEST
        + "spec: {pytorchReplicaSpecs: {Worker: {replicas: 1, template: {spec: {containers: [{name: c, command: [torchrun, pretrain_gpt.py, ",
        "'1']}]}}}}}\n",
    ),
    "manifest environment": numbered(
        "run.yaml",
        "{name: e%d, value: x}, ",
        MANIFEST
        + "spec: {pytorchReplicaSpecs: {Worker: {replicas: 1, template: {spec: {containers: [{name: c, command: [torchrun, pretrain_gpt.py], env: [",
        "]}]}}}}}\n",
    ),
    "manifest script": repeated(
        "run.yaml",
        "            true\n",
        MANIFEST
        + "spec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: 1\n      template:\n        spec:\n          containers:\n          - name: c\n            command: [bash, -c]\n            args:\n            - |\n              torchrun pretrain_gpt.py\n",
    ),
}

HERE = "cat <<EOF\n"
SHELL: dict[str, Shape] = {
    "pipeline": repeated("run.sh", "|a", "a", LAUNCH),
    "pipeline of all": repeated("run.sh", "|a", "a"),
    "pipeline over lines": repeated("run.sh", " |\n a", "a", LAUNCH),
    "pipes of both": repeated("run.sh", "|&a", "a", LAUNCH),
    "and": repeated("run.sh", "true && ", "", COMMAND + "\n"),
    "or": repeated("run.sh", "false || ", "", COMMAND + "\n"),
    "and of unknown": repeated("run.sh", "x && ", "", COMMAND + "\n"),
    "and of tests": repeated("run.sh", "[ $A ] && ", "", COMMAND + "\n"),
    "and or": repeated("run.sh", "a && b || ", "", COMMAND + "\n"),
    "semicolons": repeated("run.sh", "a;", "", LAUNCH),
    "empty commands": repeated("run.sh", ";;", "", LAUNCH),
    "ampersands": repeated("run.sh", "a&", "", LAUNCH),
    "background launches": repeated("run.sh", COMMAND + " &\n", "", "wait\n"),
    "background launches on a line": repeated("run.sh", "torchrun pretrain_gpt.py & ", "", "\n"),
    "launches": repeated("run.sh", COMMAND + "\n"),
    "launches of a loop": repeated("run.sh", "1 ", "for i in ", f"; do {COMMAND} --seed $i; done\n"),
    "commands": repeated("run.sh", "a b c\n", "", LAUNCH),
    "unknown commands": numbered("run.sh", "command%d --flag%d\n", "", LAUNCH),
    "echoes": repeated("run.sh", "echo a\n", "", LAUNCH),
    "lost options": repeated("run.sh", "--seed 1\n", COMMAND + "\n"),
    "lost options of many kinds": numbered("run.sh", "--option-%d 1\n", COMMAND + "\n"),
    "blank after backslash": repeated("run.sh", " \\ \n --seed 1", COMMAND, "\n"),
    "case arms": repeated("run.sh", "a) b;;\n", "case $A in\n", "esac" + LAUNCH),
    "case arms of many kinds": numbered("run.sh", "a%d) A=%d;;\n", "case $A in\n", "esac" + LAUNCH),
    "case arms of a known word": numbered("run.sh", "a%d) A=%d;;\n", "case x in\n", "esac" + LAUNCH),
    "case patterns": repeated("run.sh", "a|", "case $A in\n", "b) c;; esac" + LAUNCH),
    "elif": repeated("run.sh", "elif [ $A ]; then B=1\n", "if [ $A ]; then B=2\n", "fi" + LAUNCH),
    "elif of many": numbered("run.sh", "elif [ $A = %d ]; then B%d=1\n", "if [ $A ]; then B=2\n", "fi" + LAUNCH),
    "ifs": repeated("run.sh", "if [ $A ]; then B=1; fi\n", "", LAUNCH),
    "ifs of many": numbered("run.sh", "if [ $A%d ]; then B%d=1; else B%d=2; fi\n", "", LAUNCH),
    "ifs in ifs": nested("run.sh", "if a; then ", "b", "; fi", "", LAUNCH),
    "loops": repeated("run.sh", "for i in 1 2 3; do a; done\n", "", LAUNCH),
    "loops in loops": nested("run.sh", "for i in 1 2 3; do ", "a", "; done", "", LAUNCH),
    "whiles in whiles": nested("run.sh", "while a; do ", "b", "; done", "", LAUNCH),
    "loop over words": repeated("run.sh", "a ", "for i in ", f"; do A=$i; done{LAUNCH}"),
    "subshells": nested("run.sh", "(", "a", ")", "", LAUNCH),
    "groups": nested("run.sh", "{ ", "a", "; }", "", LAUNCH),
    "substitutions": nested("run.sh", "$(", "a", ")", "A=", LAUNCH),
    "substitutions in quotes": nested("run.sh", '"$(', "a", ')"', "A=", LAUNCH),
    "substitutions side by side": repeated("run.sh", "$(a)", "A=", LAUNCH),
    "backquotes": repeated("run.sh", "`a`", "A=", LAUNCH),
    "open backquotes": repeated("run.sh", "`a ", "A=", LAUNCH),
    "process substitutions": nested("run.sh", "<(", "a", ")", "cat ", LAUNCH),
    "expansions": repeated("run.sh", "$A", "B=", LAUNCH),
    "expansions of a launch": repeated("run.sh", " $A", COMMAND, "\n"),
    "long expansions of a launch": repeated("run.sh", " $A", "A='" + "--seed 1 " * 100 + "'\n" + COMMAND, "\n"),
    "expansions with defaults": nested("run.sh", "${A:-", "1", "}", "B=", LAUNCH),
    "expansions with patterns": repeated("run.sh", "${A//a/b}", "A=aaaaaaaaaa\nB=", LAUNCH),
    "nested patterns": nested("run.sh", "${A#", "1", "}", "B=", LAUNCH),
    "pattern of a long text": repeated("run.sh", "a", "A=", "\nB=${A//aa/b}\nC=${A##*a}\nD=${A%%a*}" + LAUNCH),
    "doubled variables": numbered("run.sh", "A%d=$A$A\nA=$A$A\n", "A=aa\n", LAUNCH),
    "appended": repeated("run.sh", "A+=aa\n", "A=a\n", LAUNCH),
    "appended options": repeated("run.sh", 'A="$A --seed 1"\n', "A=\n", COMMAND + " $A\n"),
    "appended arrays": repeated("run.sh", "A+=(--seed 1)\n", "A=()\n", COMMAND + ' "${A[@]}"\n'),
    "assignments": numbered("run.sh", "A%d=1\n", "", LAUNCH),
    "assignments of options": numbered("run.sh", 'A%d_ARGS="--seed 1"\n', "", LAUNCH),
    "groups of options never set": numbered("run.sh", " $A%d_ARGS", COMMAND, "\n"),
    "groups of options misspelt": numbered(
        "run.sh", 'A%d_ARG="--seed 1"\n', "", f"{COMMAND} {' '.join(f'$B{i}_ARGS' for i in range(50))}\n"
    ),
    "values never set": numbered("run.sh", " --seed $A%d", COMMAND, "\n"),
    "exports": numbered("run.sh", "export A%d=1\n", "", LAUNCH),
    "exports and launches": numbered("run.sh", "export A%d=1\ntorchrun pretrain_gpt.py\n", "", LAUNCH),
    "upper case names": numbered("run.sh", "NAME%d=1\n", "", LAUNCH),
    "assignments in front": numbered("run.sh", "A%d=1 ", "", COMMAND + "\n"),
    "assignments on a line": repeated("run.sh", "A=1 ", "", LAUNCH),
    "declarations": repeated("run.sh", "declare -a A=(1)\n", "", LAUNCH),
    "array": repeated("run.sh", "1 ", "A=(", ")\n" + COMMAND + ' "${A[@]}"\n'),
    "array elements": numbered("run.sh", "A[%d]=1\n", "", COMMAND + ' "${A[@]}"\n'),
    "sparse array elements": repeated("run.sh", "A[999999999]=1\n", "", LAUNCH),
    "array subscripts": nested("run.sh", "${A[", "1", "]}", "B=", LAUNCH),
    "arithmetic": repeated("run.sh", "+1", "A=$((1", "))" + LAUNCH),
    "arithmetic parentheses": nested("run.sh", "(", "1", ")", "A=$((", "))" + LAUNCH),
    "arithmetic ternaries": repeated("run.sh", "1?1:", "A=$((", "1))" + LAUNCH),
    "arithmetic signs": repeated("run.sh", "- ", "A=$((", "1))" + LAUNCH),
    "arithmetic of names": repeated("run.sh", "+B", "B=1\nA=$((1", "))" + LAUNCH),
    "arithmetic expansions": repeated("run.sh", "$((1+1))", "A=", LAUNCH),
    "arithmetic commands": repeated("run.sh", "((A++))\n", "A=1\n", LAUNCH),
    "open arithmetic": repeated("run.sh", "((", "A=$((1", "\n" + COMMAND + "\n"),
    "braces": nested("run.sh", "{a,", "b", "}", COMMAND + " ", "\n"),
    "braces side by side": repeated("run.sh", "{a,b}", COMMAND + " ", "\n"),
    "brace lists": repeated("run.sh", "a,", COMMAND + " {", "b}\n"),
    "brace ranges": repeated("run.sh", "{1..999} ", COMMAND + " ", "\n"),
    "here-documents": repeated("run.sh", HERE + "a\nEOF\n", "", LAUNCH),
    "here-documents of one line": repeated("run.sh", "cat <<A <<B\na\nA\nb\nB\n", "", LAUNCH),
    "here-documents at once": repeated("run.sh", " <<A", "cat", "\n" + LAUNCH),
    "here-document": repeated("run.sh", "a\n", HERE, "EOF" + LAUNCH),
    "here-document of expansions": repeated("run.sh", "$A ${A} $(a)\n", HERE, "EOF" + LAUNCH),
    "here-document of a script": repeated("run.sh", "a b\n", "bash <<EOF\n#!/bin/bash\n", COMMAND + "\nEOF\n"),
    "here-document without end": repeated("run.sh", "a\n", HERE),
    "here-strings": repeated("run.sh", "cat <<< a\n", "", LAUNCH),
    "here-strings at once": repeated("run.sh", " <<< a", "cat", LAUNCH),
    "redirections": repeated("run.sh", " >a", "x", LAUNCH),
    "redirected groups": nested("run.sh", "{ ", "a", "; } >a", "", LAUNCH),
    "arguments": repeated("run.sh", " --seed 1", COMMAND, "\n"),
    "unknown arguments": numbered("run.sh", " --sed%d 1", COMMAND, "\n"),
    "positional arguments": repeated("run.sh", " a", COMMAND, "\n"),
    "long argument": repeated("run.sh", "a", COMMAND + " --load ", "\n"),
    "arguments of a list": repeated("run.sh", " 1", COMMAND + " --data-path", "\n"),
    "arguments over lines": repeated("run.sh", " \\\n  --seed 1", COMMAND, "\n"),
    "quoted arguments": repeated("run.sh", " '--seed' \"1\"", COMMAND, "\n"),
    "quoted pieces": repeated("run.sh", "'a'\"b\"", COMMAND + " --load ", "\n"),
    "open quotes": repeated("run.sh", "\"'", COMMAND, "\n"),
    "escapes": repeated("run.sh", "\\a", COMMAND + " --load ", "\n"),
    "continuations": repeated("run.sh", "\\\n", COMMAND + " ", "\n"),
    "globs": repeated("run.sh", "*?", COMMAND + " ", "\n"),
    "layout pattern": repeated("run.sh", "t|", COMMAND + " --pipeline-model-parallel-layout '", "L'\n"),
    "layout brackets": nested("run.sh", "(", "t", ")*2", COMMAND + " --pipeline-model-parallel-layout '", "'\n"),
    "hybrid pattern": repeated("run.sh", "M*-", COMMAND + " --hybrid-override-pattern '", "'\n"),
    "list expression": repeated("run.sh", "[1]+", COMMAND + " --moe-layer-freq '", "[1]'\n"),
    "nested list expression": nested("run.sh", "(", "[1]", ")*2", COMMAND + " --moe-layer-freq '", "'\n"),
    "comments": repeated("run.sh", "# comment\n", "", LAUNCH),
    "comments and a mark": repeated("run.sh", "# preflight: ignore[x] y\n", "", LAUNCH),
    "comments of many rules": numbered("run.sh", "# preflight: ignore[device-coun%d] y\n", "", LAUNCH),
    "comments in backquotes": repeated("run.sh", "`#", "A=", LAUNCH),
    "placeholders": repeated("run.sh", " '<a b>'", COMMAND, "\n"),
    "open placeholders": repeated("run.sh", "A=<a", "", LAUNCH),
    "hashes": repeated("run.sh", "#", "", LAUNCH),
    "empty lines": repeated("run.sh", "\n", "", LAUNCH),
    "blanks": repeated("run.sh", " ", "", LAUNCH),
    "carriage returns": repeated("run.sh", "true\r\n", "", LAUNCH),
    "single carriage returns": repeated("run.sh", "\r", "", LAUNCH),
    "functions": numbered("run.sh", "f%d() { a; }\n", "", LAUNCH),
    "functions that call": numbered(
        "run.sh", "f%d() { g; g; }\n", "g() { h; h; }\nh() { i; i; }\ni() { j; j; }\n", "g\nf1" + LAUNCH
    ),
    "function that calls itself": repeated("run.sh", "f;", "f() { ", " }\nf" + LAUNCH),
    "functions in functions": nested("run.sh", "f() { ", "a", "; }", "", LAUNCH),
    "calls": repeated("run.sh", "f 1\n", "f() { A=$1; B=$A; }\n", LAUNCH),
    "evals": repeated("run.sh", "eval a\n", "", LAUNCH),
    "evals in evals": repeated("run.sh", "eval ", "", COMMAND + "\n"),
    "shells": repeated("run.sh", "bash -c 'a b'\n", "", LAUNCH),
    "shell of a script": repeated("run.sh", "a b; ", "bash -c '", f"{COMMAND}'\n"),
    "wrappers": repeated("run.sh", "time ", "", COMMAND + "\n"),
    "wrappers of options": repeated("run.sh", "srun -N 1 ", "", COMMAND + "\n"),
    "environments": repeated("run.sh", "env A=1 ", "", COMMAND + "\n"),
    "sources": repeated("run.sh", "source a.sh\n", "", LAUNCH),
    "sources of many": numbered("run.sh", "source a%d.sh\n", "", LAUNCH),
    "scripts of many": numbered("run.sh", "bash a%d.sh\n", "", LAUNCH),
    "shifts": repeated("run.sh", "shift\n", "set -- a b c\n", LAUNCH),
    "set": repeated("run.sh", " a", "set --", LAUNCH),
    "sbatch lines": repeated("run.sh", "#SBATCH --nodes=2\n", "#!/bin/bash\n", LAUNCH),
    "sbatch hetjobs": repeated("run.sh", "#SBATCH hetjob\n", "#!/bin/bash\n", LAUNCH),
    "long sbatch line": repeated("run.sh", " --nodes=2", "#!/bin/bash\n#SBATCH", LAUNCH),
    "tests": repeated("run.sh", " -a b", "[ a", " ]" + LAUNCH),
    "double tests": repeated("run.sh", " && b", "[[ a", " ]]" + LAUNCH),
    "tests in tests": nested("run.sh", "( ", "a", " )", "[[ ", " ]]" + LAUNCH),
    "negations": repeated("run.sh", "! ", "", COMMAND + "\n"),
    "double semicolons": repeated("run.sh", "a;;", "case $A in b) ", " esac" + LAUNCH),
    "open parentheses": repeated("run.sh", "(", "", LAUNCH),
    "open braces": repeated("run.sh", "{ ", "", LAUNCH),
    "open substitutions": repeated("run.sh", "$(", "A=", LAUNCH),
    "open expansions": repeated("run.sh", "${", "A=", LAUNCH),
    "open ifs": repeated("run.sh", "if a; then ", "", LAUNCH),
    "open cases": repeated("run.sh", "case a in b) ", "", LAUNCH),
    "open tests": repeated("run.sh", "[[ ", "", LAUNCH),
    "open here-documents": numbered("run.sh", "cat <<E%d\n", "", LAUNCH),
    "closing parentheses": repeated("run.sh", ")", "", LAUNCH),
    "closing braces": repeated("run.sh", "} ", "", LAUNCH),
    "closing words": repeated("run.sh", "fi done esac\n", "", LAUNCH),
    "letters outside ASCII": repeated("run.sh", "é", COMMAND + " --load ", "\n"),
    "dollar signs": repeated("run.sh", "$", COMMAND + " ", "\n"),
    "read": repeated("run.sh", "read A <<< 'a b'\n", "", LAUNCH),
    "mapfile": repeated("run.sh", "a\n", "mapfile A <<EOF\n", "EOF\n" + COMMAND + ' "${A[@]}"\n'),
    "printf": repeated("run.sh", "A=$(printf '%s' a)\n", "", LAUNCH),
    "echo pipeline": repeated("run.sh", "| tr a b ", "A=$(echo a ", ")" + LAUNCH),
    "seq": repeated("run.sh", "A=$(seq 1 999)\n", "", LAUNCH),
    "expr": repeated("run.sh", " + 1", "A=$(expr 1", ")" + LAUNCH),
}
SHAPES: dict[str, Shape] = {
    **{f"yaml {name}": shape for name, shape in YAML.items()},
    **{f"shell {name}": shape for name, shape in SHELL.items()},
}
