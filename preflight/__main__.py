"""python -m preflight"""

import os
import sys


def _leave_folder() -> None:
    """Remove the working directory, which Python puts first for `-m`, from the path: modules there are not part of
    preflight. Modules that Python imports before this line may still come from there; `python -I -m preflight` and the
    console script import nothing from it.
    """
    try:
        here = os.getcwd()
    except FileNotFoundError:  # the working directory was deleted
        here = ""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.path and sys.path[0] in ("", here) and (not here or os.path.realpath(here) != os.path.realpath(own)):
        del sys.path[0]


if __name__ == "__main__":
    _leave_folder()
    from preflight.cli import main

    main()
