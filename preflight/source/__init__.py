"""The base of all other packages: text and positions, words, findings as values, spelling, atomic writing, cache."""
