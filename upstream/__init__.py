"""Maintainers' tools: extract the options and checks of each framework release from its source. Not installed."""
