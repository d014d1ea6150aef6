"""The options of a Megatron run's release, for editors that complete them."""

from __future__ import annotations

from preflight.dialects.megatron.json_schema import option
from preflight.dialects.megatron.option_table import Flag, table
from preflight.dialects.offers import Offer, Offers
from preflight.job import Job


def offers(job: Job) -> Offers:
    """The options by spelling; for a MODEL_ARGS file the same as a schema."""
    options = table(job.target.framework, job.target.version or "").options
    arguments = {"type": "object", "properties": {name: option(flag) for name, flag in options.items()}}
    schema = {"type": "object", "properties": {"MODEL_ARGS": arguments, "ENV_VARS": {"type": "object"}}}
    return Offers({name: _offer(flag) for name, flag in options.items()}, schema)


def _offer(flag: Flag) -> Offer:
    if flag.switch:
        return Offer("switch", switch=True)
    count = "" if flag.nargs is None else " values"
    standard = "" if flag.default is None else f", default {flag.default}"
    return Offer(f"{flag.kind}{count}{standard}", tuple(map(str, flag.choices or ())))
