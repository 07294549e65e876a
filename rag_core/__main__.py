"""`python -m rag_core …`: the command line; see rag_core.cli."""

import sys

from rag_core.cli import main

sys.exit(main())
