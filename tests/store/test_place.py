from pathlib import Path

import pytest

from rag_core.errors import StoreError
from rag_core.store.sqlite import file_system, refuse_network_folder

MOUNTS = """\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
36 21 0:31 / /srv rw,relatime shared:1 - nfs4 host:/export rw
37 36 0:32 / /srv/local rw,relatime - xfs /dev/vdb rw
38 21 0:33 / /mnt/my\\040share rw,relatime - cifs //host/share rw
39 21 0:34 / /mnt/far rw,relatime - fuse.sshfs me@host: rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/a", "ext4"),
        ("/srv/labels", "nfs4"),
        ("/srv/local/labels", "xfs"),
        ("/mnt/my share/x", "cifs"),
        ("/srvx", "ext4"),
    ],
)
def test_the_deepest_mount_above_tells_the_file_system(folder, kind):
    assert file_system(Path(folder), MOUNTS) == kind


@pytest.mark.parametrize("folder", ["/srv/labels", "/mnt/my share", "/mnt/far/away"])
def test_a_network_folder_is_refused(folder):
    with pytest.raises(StoreError, match="network file system"):
        refuse_network_folder(Path(folder), MOUNTS)


@pytest.mark.parametrize("mounts", [MOUNTS, "", "nonsense\n"])
def test_a_local_or_unknown_folder_is_taken(mounts):
    assert refuse_network_folder(Path("/home/a"), mounts) is None
