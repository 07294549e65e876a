"""Read one path as an ingest would, in a process of its own; prints what happened, and of it and of the child that reads
CPU seconds together and the larger peak memory in MB.
"""

import json
import re
import resource
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
child = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = process_time() - started + child.ru_utime + child.ru_stime
print(json.dumps([said, seconds, max(peak, child.ru_maxrss / 1024)]))
