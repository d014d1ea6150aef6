"""The job's interpreter has a package that the release's own table of versions does not list.

## What it does
With `--site --python PATH`, compares `torch` and `mindspore` in that interpreter with the versions that the READMEs of
MindSpeed, MindSpeed-LLM and MindFormers list for their releases, by their first two numbers, where the release is
stated. `torch_npu` is not compared: its packages have other version numbers than the tables.

## Why is this bad?
The pair is not tested upstream. Functions that the release calls may be missing, which ends the run at import or in its
first step; often it runs.

## Example
With `mindspore` 2.4.10 in that environment, under `--site`:

    preflight check run.yaml --site --python /envs/train/bin/python --target mindformers@1.7.0

Use instead `mindspore` 2.7.1, or the release that belongs to 2.4.

## References
Ascend/MindSpeed v2.3.0_core_r0.12.1, README.md; mindspore-lab/mindformers r1.8.0, README.md, Version Mapping
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule, schemas

OTHER = "the job's interpreter has {package} {version}; {framework} {release} lists {listed}"


@rule(severity=Severity.NOTE, reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """A package of other first two numbers than all that are listed."""
    if job.site is None or not job.site.packages or not job.arguments.certainty.stated:
        return
    installed, tables = {one.name: one.version for one in job.site.packages}, schemas.read("packages")
    for framework, release in job.versions.items():
        for package, listed in tables.get(framework, {}).get(release, {}).items():
            version = installed.get(package, "")
            if version and ".".join(version.split(".")[:2]) not in listed:
                said = Message(
                    OTHER,
                    package=package,
                    version=version,
                    framework=framework,
                    release=release,
                    listed=", ".join(listed),
                )
                yield Finding(said, job.start)
