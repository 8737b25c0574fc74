"""Tools of somebody else: the model reads files by an MCP server, a program of npm, in a folder of its own.

python -m effectful_agents.harness llm_examples/mcp_files.py

The server is `@modelcontextprotocol/server-filesystem`; `npx`, which comes with Node.js, fetches and starts it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from effectful_agents import NotHandled, Risk, Skill, handler
from effectful_agents.handlers.delegation.mcp import MCPTools
from effectful_agents.handlers.policy import RiskPolicy


@Skill.define
def ask(folder: str, question: str) -> str:
    """Answer by the files in {folder}, which the tools can list and read: {question}"""
    raise NotHandled


def server(folder: Path) -> MCPTools:
    """The server, which sees this folder and no other. The first start fetches it, which takes a while."""
    words = ["--yes", "@modelcontextprotocol/server-filesystem", str(folder)]
    return MCPTools.stdio("npx", words, prefix="files", only=["list_directory", "read_text_file"], connect_timeout=120)


def main() -> None:
    """Ask about two files. Only tools that say that they only read may be called."""
    if shutil.which("npx") is None:
        sys.exit("This example needs npx, which comes with Node.js: https://nodejs.org")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "bolts.txt").write_text("In stock: 3.\n")
        (folder / "nuts.txt").write_text("In stock: 12.\n")
        with handler(server(folder)), handler(RiskPolicy(allow=Risk.READ, approve=Risk.READ)):
            print(ask(str(folder), "How many bolts are there?"))


if __name__ == "__main__":
    main()
