"""Texts of any length made of one repeated construct, on which a reader, a rule or a report may take too long.

`SHAPES[name](size)` is the name of a file and a text of about that many characters.
"""

from __future__ import annotations

from constructs import Shape
from shell_shapes import SHELL
from yaml_shapes import YAML

SHAPES: dict[str, Shape] = {
    **{f"yaml {name}": shape for name, shape in YAML.items()},
    **{f"shell {name}": shape for name, shape in SHELL.items()},
}
