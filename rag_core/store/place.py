"""Is this folder a place where SQLite's write-ahead log is safe? Network file systems are not.

WAL needs memory shared by all writers, which a network file system does not give. Only Linux says what a folder is
mounted from; elsewhere nothing is detected and nothing is refused.
"""

from __future__ import annotations

import re
from pathlib import Path

from rag_core.errors import StoreError

MOUNTS = Path("/proc/self/mountinfo")
NAMES = r"nfs4?|cifs|smb3|smbfs|afs|ceph|glusterfs|lustre|beegfs|davfs2?|ocfs2|gfs2|sshfs|s3fs|gcsfuse|rclone"
NETWORK = re.compile(rf"(?:fuse\.)?(?:{NAMES})")  # not 9p: containers show their local disk as that


def refuse_network_folder(folder: Path, mounts: str | None = None) -> None:
    """Raise a StoreError where the folder lies on a network file system that can be told as one."""
    kind = file_system(folder, _read_mounts() if mounts is None else mounts)
    if NETWORK.fullmatch(kind):
        raise StoreError(f"workspace {folder} lies on a network file system ({kind}), expected a local disk")


def file_system(folder: Path, mounts: str) -> str:
    """The file system type of the deepest mount above the folder, '' where the table does not tell.

    `mounts` is the text of /proc/self/mountinfo (proc_pid_mountinfo(5)); of two mounts on one point the later counts.
    """
    target, best, kind = folder.resolve(), Path(), ""
    for line in mounts.splitlines():
        fields, _, tail = line.partition(" - ")
        point = Path(_unescape(fields.split()[4])) if len(fields.split()) > 4 else None
        if point and target.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, (tail.split() or [""])[0]
    return kind


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


def _read_mounts() -> str:
    try:
        return MOUNTS.read_text("utf-8", "replace")
    except OSError:
        return ""
