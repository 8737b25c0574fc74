"""`python -m effectful_agents.harness SCRIPT`: run a script in the standard stack."""

import sys

from effectful_agents.harness.launcher import main

if __name__ == "__main__":
    sys.exit(main())
