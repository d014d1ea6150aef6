"""A key appears twice in one mapping; only the last counts.

## What it does
Reports keys that appear twice in the same mapping. With equal values it is a note, with different ones a
warning.

## Why is this bad?
PyYAML, and so the framework, silently takes the last one. A second `parallel_config:` replaces the first completely:
what only the first one sets is lost.

## Example
    runner_config: {batch_size: 1}
    runner_config: {epochs: 2}

Use instead:

    runner_config: {batch_size: 1, epochs: 2}

## Fix safety
Safe: the first one, which never counted, is removed; the run stays the same. Look at which of the two was meant.

## References
PyYAML, SafeConstructor.construct_mapping; YAML 1.1, section 3.2.1.3 asks for unique keys
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Related, Safety, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    for document in job.documents:
        for problem in document.problems:
            if problem.kind == "duplicate-key":
                related = tuple(Related(span, "the one that counts") for span in problem.related)
                gone = (Edit("remove", (), span=problem.span),)
                fix = Fix("remove the one that does not count", gone, Safety.SAFE, offered=not problem.harmless)
                yield Finding(
                    problem.message, problem.span, related, fix, severity=Severity.NOTE if problem.harmless else None
                )
