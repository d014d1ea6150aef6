"""Text and places in it, words, findings as values, spelling, atomic writing, the cache:
what every other package is built on."""
