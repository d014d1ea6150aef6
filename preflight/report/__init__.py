"""One module per output format. A reporter takes a Report and returns the text to write."""
