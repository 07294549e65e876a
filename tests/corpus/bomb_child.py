"""Read one path as an ingest would, in a process of its own; prints what happened, CPU seconds and peak memory in MB."""

import json
import re
import sys
from pathlib import Path
from time import process_time

from rag_core.corpus.load import load
from rag_core.errors import WinnowError

started = process_time()
try:
    said = f"read {len(load([sys.argv[1]], sys.argv[2]).chunks)} chunks"
except WinnowError as error:
    said = f"{type(error).__name__}: {error}"
except BaseException as error:
    said = f"FAULT {type(error).__name__}: {error}"
# not ru_maxrss: that begins with the peak of the process that started this one
peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([said, process_time() - started, peak]))
