"""How long importing the package takes, against importing pydantic and effectful, which it needs."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

import pytest

# By name: `import pydantic` alone loads next to nothing of it.
NEEDED = "from pydantic import BaseModel, TypeAdapter; from effectful.ops import semantics, syntax, types"
IMPORTS = {
    "pydantic and effectful": NEEDED,
    "effectful_agents": "import effectful_agents",
    "effectful_agents, and a harness": "import effectful_agents; effectful_agents.harness()",
}

MEASURE = "import time; start = time.process_time(); {code}; print(time.process_time() - start)"


@pytest.mark.parametrize("what", IMPORTS)
def test_import(report: Any, what: str) -> None:
    code = MEASURE.format(code=IMPORTS[what])
    seconds = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(7)]
    report(f"import of {what}", f"{statistics.median(seconds) * 1e3:8.1f} ms (least {min(seconds) * 1e3:.1f})")
