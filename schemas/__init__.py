"""Data only: flag tables, JSON Schemas, operator paths, devices, renames, per version."""
