import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the generator's process stands beside the tests
