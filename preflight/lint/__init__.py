"""Rules: rule functions, declared constraints and their evaluation, certainty, suppression, the table of rules."""
