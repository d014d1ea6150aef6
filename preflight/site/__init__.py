"""What a run names, looked at where it lies, where that is asked for: data, checkpoints, folders, packages."""
