"""A run in framework-independent terms: values with origins, arguments, plan, machine, request and settings."""
