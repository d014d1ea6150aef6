"""The MindFormers dialect: claims YAML by its keys, and reads it by its kind of config."""

from __future__ import annotations

from preflight.dialects import Reading, Surroundings
from preflight.dialects.mindformers.checkout_release import certainty, identified, set_beside
from preflight.dialects.mindformers.config_files import VERSIONS, kind_of, known_version, looks_like
from preflight.dialects.mindformers.release_tables import read_at
from preflight.loaders.document import Document
from preflight.run.request import Request, Target
from preflight.source.hints import TYPE_CHECKING
from preflight.source.record import replace

if TYPE_CHECKING:
    from preflight.dialects.offers import Offers
    from preflight.job import Job

ENTRY = "run_mindformer.py"
_NO_MAPPING = "mindformers/tools/register/config.py:185"
_NOT_YAML = {"1.5.0": 372, "1.7.0": 367, "2.1.0": 391}


class MindFormersDialect:
    """Graph-mode configs of every release, and pynative configs of 2.x."""

    name = "mindformers"

    @property
    def targets(self) -> tuple[Target, ...]:
        """The newest version first."""
        return tuple(Target("mindformers", version) for version in reversed(VERSIONS))

    def refuses_text(self, target: Target) -> str | None:
        """Reports that the framework refuses a text that is not YAML, at the requested version."""
        version = known_version(target.version) if target.version else VERSIONS[-1]
        line = _NOT_YAML.get(read_at(version))
        return f"mindformers/tools/check_rules.py:{line}" if line and target.framework == self.name else None

    def refuses_shape(self, document: Document, target: Target) -> str | None:
        """Reports that the framework refuses an empty file or one without a mapping: its keys are read immediately."""
        empty = document.launch is None and (document.tree is None or document.tree.kind != "mapping")
        return _NO_MAPPING if empty and target.framework == self.name else None

    def offers(self, job: Job) -> Offers:
        """Keys and values offered to editors."""
        from preflight.dialects.mindformers.json_schema import offers

        return offers(job)

    def claims(self, document: Document, request: Request) -> bool:
        """A launch of run_mindformer.py, or a YAML mapping with sections of a config; if a target is stated, one
        section is enough."""
        if document.launch is not None:
            entry = (document.launch.entry.text or "").rpartition("/")[2]
            return entry == ENTRY and (request.target is None or request.target.framework == self.name)
        if document.kind != "yaml" or document.tree is None:
            return False
        wanted = request.target.framework if request.target else ""
        return wanted in ("", self.name) and looks_like(document.tree, hinted=wanted == self.name)

    def read(self, document: Document, surroundings: Surroundings) -> Reading:
        """Translate; the kind of config decides how."""
        around = identified(document, surroundings)
        reading = self._read(document, around)
        arguments = replace(reading.arguments, certainty=certainty(document, surroundings, reading.arguments.certainty))
        return reading._replace(arguments=arguments)

    def _read(self, document: Document, surroundings: Surroundings) -> Reading:
        if document.launch is not None:
            from preflight.dialects.mindformers.launch import read_launch

            return read_launch(document, surroundings)
        tree = document.tree
        assert tree is not None
        if kind_of(tree) == "pynative":
            from preflight.dialects.mindformers.pynative import read_pynative

            return read_pynative(document, tree, surroundings)
        from preflight.dialects.mindformers.graph import read_graph

        return read_graph(document, surroundings, set_beside(document, tree, surroundings))
