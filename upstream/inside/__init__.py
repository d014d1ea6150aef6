"""What runs in a process of its own, with a framework's own code: real parsers and validators over stand-ins for
packages."""
