"""What a run is, in neutral terms: values with their origin, arguments, the plan, the machine,
the request and the settings."""
