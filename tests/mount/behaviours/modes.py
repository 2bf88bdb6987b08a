"""Permissions, owners, and what set-user-ID, set-group-ID and the sticky bit do. The kernel checks; we keep."""

import os
import stat
import subprocess
from errno import EACCES, EPERM
from pathlib import Path

from tests.mount.calls import NOBODY, masked, opened, permissions, refused, unprivileged


def all_twelve_mode_bits(place: Path) -> None:
    file, directory = place / "file", place / "directory"
    file.touch()
    directory.mkdir()
    for mode in (*(1 << bit for bit in range(12)), 0, 0o7777, 0o6755, 0o644):
        for path in (file, directory):
            path.chmod(mode)
            assert permissions(path) == mode


def modes_at_creation(place: Path) -> None:
    with masked(0):
        with opened(place / "file", os.O_WRONLY | os.O_CREAT, 0o6751):
            pass
        (place / "directory").mkdir(0o1753)
        os.mkfifo(place / "fifo", 0o604)
    assert permissions(place / "file") == 0o6751
    assert permissions(place / "directory") == 0o1753
    assert permissions(place / "fifo") == 0o604
    with masked(0o027):
        with opened(place / "masked", os.O_WRONLY | os.O_CREAT, 0o666):
            pass
        (place / "masked directory").mkdir(0o777)
    assert permissions(place / "masked") == 0o640
    assert permissions(place / "masked directory") == 0o750


def a_read_only_file_can_be_written_by_its_maker(place: Path) -> None:
    """open(2): the mode counts for later opens only."""
    place.chmod(0o777)
    with opened(place, os.O_RDONLY) as here, unprivileged():
        fd = os.open("file", os.O_RDWR | os.O_CREAT, 0o444, dir_fd=here)
        os.write(fd, b"content")
        os.close(fd)
        with refused(EACCES):
            os.open("file", os.O_WRONLY, dir_fd=here)


def owners(place: Path) -> None:
    file = place / "file"
    file.touch()
    os.chown(file, 1234, 5678)
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 5678)
    os.chown(file, -1, 0xFFFF_FFFE)
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 0xFFFF_FFFE)
    place.chmod(0o777)
    with opened(place, os.O_RDONLY) as here, unprivileged(uid=1234, gid=55):
        os.close(os.open("made", os.O_WRONLY | os.O_CREAT, dir_fd=here))
        os.mkdir("directory", dir_fd=here)
        os.symlink("x", "link", dir_fd=here)
    for name in ("made", "directory", "link"):
        info = (place / name).lstat()
        assert (info.st_uid, info.st_gid) == (1234, 55)


def permissions_are_checked(place: Path) -> None:
    place.chmod(0o755)
    (place / "secret").write_bytes(b"content")
    (place / "secret").chmod(0o600)
    (place / "closed").mkdir(0o700)
    with opened(place, os.O_RDONLY) as here, unprivileged():
        for flags in (os.O_RDONLY, os.O_WRONLY):
            with refused(EACCES):
                os.open("secret", flags, dir_fd=here)
        with refused(EACCES):
            os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=here)
        with refused(EACCES):
            os.stat("closed/inner", dir_fd=here)
        with refused(EACCES):
            os.unlink("secret", dir_fd=here)
        with refused(EPERM):
            os.chmod("secret", 0o666, dir_fd=here)
        with refused(EPERM):
            os.utime("secret", (0, 0), dir_fd=here)
        assert os.access("secret", os.R_OK, dir_fd=here, effective_ids=True) is False


def a_change_of_mode_counts_at_once(place: Path) -> None:
    place.chmod(0o755)
    file = place / "file"
    file.touch()
    with opened(place, os.O_RDONLY) as here:
        for _ in range(3):
            file.chmod(0o600)
            with unprivileged(), refused(EACCES):
                os.open("file", os.O_RDONLY, dir_fd=here)
            file.chmod(0o644)
            with unprivileged():
                os.close(os.open("file", os.O_RDONLY, dir_fd=here))


def set_group_id_directories_hand_down_their_group(place: Path) -> None:
    os.chown(place, 0, 4321)
    place.chmod(0o2775)
    with masked(0o022):
        (place / "file").touch()
        (place / "directory").mkdir()
        (place / "directory" / "inner").mkdir()
        (place / "link").symlink_to("x")
        os.mkfifo(place / "fifo")
    found = {name: (place / name).lstat() for name in ("file", "directory", "directory/inner", "link", "fifo")}
    assert {info.st_gid for info in found.values()} == {4321}
    assert {name for name, info in found.items() if info.st_mode & stat.S_ISGID} == {"directory", "directory/inner"}
    place.chmod(0o755)
    (place / "later").mkdir()
    assert (place / "later").stat().st_gid == 0


def sticky_directories_protect_what_others_made(place: Path) -> None:
    place.chmod(0o1777)
    (place / "mine").touch()
    with opened(place, os.O_RDONLY) as here:
        with unprivileged():
            with refused(EPERM):
                os.unlink("mine", dir_fd=here)
            with refused(EPERM):
                os.rename("mine", "yours", src_dir_fd=here, dst_dir_fd=here)
            os.close(os.open("theirs", os.O_CREAT | os.O_WRONLY, dir_fd=here))
            os.unlink("theirs", dir_fd=here)
        place.chmod(0o777)
        with unprivileged():
            os.unlink("mine", dir_fd=here)


def a_write_by_others_takes_set_user_id_away(place: Path) -> None:
    place.chmod(0o755)
    file = place / "file"
    file.touch()
    os.chown(file, 1000, 1000)
    file.chmod(0o6777)
    with opened(place, os.O_RDONLY) as here, unprivileged():
        fd = os.open("file", os.O_WRONLY, dir_fd=here)
        os.write(fd, b"content")
        os.close(fd)
    assert permissions(file) == 0o777
    assert file.read_bytes() == b"content"


def a_new_owner_takes_set_user_id_away(place: Path) -> None:
    """chown(2): for an unprivileged caller; the kernel does it for root as well."""
    file = place / "file"
    file.touch()
    os.chown(file, NOBODY, NOBODY)
    file.chmod(0o6755)
    place.chmod(0o755)
    with opened(place, os.O_RDONLY) as here, unprivileged():
        os.chown("file", -1, NOBODY, dir_fd=here)
    assert permissions(file) == 0o755


def set_user_id_programs_run_as_their_owner(place: Path) -> None:
    program = place / "id"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    os.chown(program, 4242, 4343)
    program.chmod(0o6755)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert "euid=4242" in said
    assert "egid=4343" in said


def programs_need_the_executable_bit(place: Path) -> None:
    script = place / "script"
    script.write_text("#!/bin/sh\necho it runs\n")
    with refused(EACCES):
        subprocess.run([script], check=True)
    script.chmod(0o755)
    assert subprocess.run([script], capture_output=True, check=True).stdout == b"it runs\n"
