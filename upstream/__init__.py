"""Maintainers' tools: what each release of a framework has and checks, extracted from its own source. Not installed."""
