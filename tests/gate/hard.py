"""Scripts within the size limit that are slow to check."""

from __future__ import annotations

PIPELINE = "#!/bin/bash\n" + "a|" * 95_000 + "a\n"
ARMS = "#!/bin/bash\ncase $x in\n" + "".join(f"{i}) a ;;\n" for i in range(12_000)) + "esac\n"
