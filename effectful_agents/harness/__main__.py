"""`python -m effectful_agents.harness SCRIPT`: run a script in the standard stack.

`python -m effectful_agents.harness manifest SCRIPT` says how that stack is put together.
"""

import os
import sys

from effectful_agents.harness import commands
from effectful_agents.harness.launcher import main

if __name__ == "__main__":
    # A script of that name, without an ending, is still a script.
    describes = sys.argv[1:2] == ["manifest"] and not os.path.isfile("manifest")
    sys.exit(commands.main() if describes else main())
