"""What a run names, looked at where it is, where that is asked for: data, checkpoints, folders, packages."""
