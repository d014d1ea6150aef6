"""Inspects, on request, the paths that a run refers to: data, checkpoints, folders, packages."""
