"""Scripts that take long to check, within the limit on their length."""

from __future__ import annotations

PIPELINE = "#!/bin/bash\n" + "a|" * 95_000 + "a\n"
ARMS = "#!/bin/bash\ncase $x in\n" + "".join(f"{i}) a ;;\n" for i in range(12_000)) + "esac\n"
