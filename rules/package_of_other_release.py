"""The job's interpreter has another release of the framework than the run is read for.

## What it does
With `--site --python PATH`, reads which versions of packages that interpreter has, as their installers have written
them down, and compares `megatron-core` and `mindformers` with the release that the run is read for, where that is
stated.

## Why is this bad?
Options that one release knows end the run in another, and defaults differ silently. A checkout on `PYTHONPATH` precedes
installed packages: give `--program` then.

## Example
With `megatron-core` 0.12.1 in that environment, under `--site`:

    preflight check run.sh --site --python /envs/train/bin/python --target megatron@0.17.0

Use instead the environment that is meant, or the release that it has.

## References
Python Packaging User Guide, Recording installed projects
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

OWN = {"megatron-core": "megatron", "mindformers": "mindformers"}
OTHER = "the job's interpreter has {package} {version}, the run is read for {framework} {release}"


@rule(severity=Severity.WARNING, reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """A package whose first two numbers are others."""
    if job.site is None or not job.arguments.certainty.stated or job.program:
        return
    for package in job.site.packages:
        framework = OWN.get(package.name, "")
        release = job.versions.get(framework, "")
        if release[:1].isdigit() and package.version.split(".")[:2] != release.split(".")[:2]:
            message = Message(
                OTHER, package=package.name, version=package.version, framework=framework, release=release
            )
            yield Finding(message, job.start)
