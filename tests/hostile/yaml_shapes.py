"""Repeated constructs of YAML."""

from __future__ import annotations

from bounded import GRAPH
from constructs import Shape, nested, numbered, repeated

MANIFEST = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\n"

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
        + (
            "spec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: 1\n      template:\n       spec:\n"
            "        containers:\n"
        ),
    ),
    "manifest arguments": repeated(
        "run.yaml",
        "'--seed', ",
        MANIFEST
        + (
            "spec: {pytorchReplicaSpecs: {Worker: {replicas: 1, template: {spec: {containers: [{name: c, command: "
            "[torchrun, pretrain_gpt.py, "
        ),
        "'1']}]}}}}}\n",
    ),
    "manifest environment": numbered(
        "run.yaml",
        "{name: e%d, value: x}, ",
        MANIFEST
        + (
            "spec: {pytorchReplicaSpecs: {Worker: {replicas: 1, template: {spec: {containers: [{name: c, command: "
            "[torchrun, pretrain_gpt.py], env: ["
        ),
        "]}]}}}}}\n",
    ),
    "manifest script": repeated(
        "run.yaml",
        "            true\n",
        MANIFEST
        + (
            "spec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: 1\n      template:\n        spec:\n"
            "          containers:\n          - name: c\n            command: [bash, -c]\n            args:\n"
            "            - |\n              torchrun pretrain_gpt.py\n"
        ),
    ),
}
