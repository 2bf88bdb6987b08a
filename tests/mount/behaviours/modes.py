"""Permissions, owners, and the effects of set-user-ID, set-group-ID and the sticky bit.

The kernel checks permissions. The file system stores them.
"""

import os
import stat
import subprocess
from errno import EACCES, EPERM
from pathlib import Path

from tests.support.files import NOBODY, opened, permissions, refused, unprivileged, with_umask


def all_twelve_mode_bits(workdir: Path) -> None:
    file, directory = workdir / "file", workdir / "directory"
    file.touch()
    directory.mkdir()
    for mode in (*(1 << bit for bit in range(12)), 0, 0o7777, 0o6755, 0o644):
        for path in (file, directory):
            path.chmod(mode)
            assert permissions(path) == mode


def modes_at_creation(workdir: Path) -> None:
    with with_umask(0):
        with opened(workdir / "file", os.O_WRONLY | os.O_CREAT, 0o6751):
            pass
        (workdir / "directory").mkdir(0o1753)
        os.mkfifo(workdir / "fifo", 0o604)
    assert permissions(workdir / "file") == 0o6751
    assert permissions(workdir / "directory") == 0o1753
    assert permissions(workdir / "fifo") == 0o604
    with with_umask(0o027):
        with opened(workdir / "masked", os.O_WRONLY | os.O_CREAT, 0o666):
            pass
        (workdir / "masked directory").mkdir(0o777)
    assert permissions(workdir / "masked") == 0o640
    assert permissions(workdir / "masked directory") == 0o750


def the_creator_of_a_read_only_file_can_write_it(workdir: Path) -> None:
    """open(2): the mode applies to later opens only."""
    workdir.chmod(0o777)
    with opened(workdir, os.O_RDONLY) as here, unprivileged():
        fd = os.open("file", os.O_RDWR | os.O_CREAT, 0o444, dir_fd=here)
        os.write(fd, b"content")
        os.close(fd)
        with refused(EACCES):
            os.open("file", os.O_WRONLY, dir_fd=here)


def owners(workdir: Path) -> None:
    file = workdir / "file"
    file.touch()
    os.chown(file, 1234, 5678)
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 5678)
    os.chown(file, -1, 0xFFFF_FFFE)
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 0xFFFF_FFFE)
    workdir.chmod(0o777)
    with opened(workdir, os.O_RDONLY) as here, unprivileged(uid=1234, gid=55):
        os.close(os.open("made", os.O_WRONLY | os.O_CREAT, dir_fd=here))
        os.mkdir("directory", dir_fd=here)
        os.symlink("x", "link", dir_fd=here)
    for name in ("made", "directory", "link"):
        info = (workdir / name).lstat()
        assert (info.st_uid, info.st_gid) == (1234, 55)


def permissions_are_checked(workdir: Path) -> None:
    workdir.chmod(0o755)
    (workdir / "secret").write_bytes(b"content")
    (workdir / "secret").chmod(0o600)
    (workdir / "closed").mkdir(0o700)
    with opened(workdir, os.O_RDONLY) as here, unprivileged():
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


def a_change_of_mode_takes_effect_at_once(workdir: Path) -> None:
    workdir.chmod(0o755)
    file = workdir / "file"
    file.touch()
    with opened(workdir, os.O_RDONLY) as here:
        for _ in range(3):
            file.chmod(0o600)
            with unprivileged(), refused(EACCES):
                os.open("file", os.O_RDONLY, dir_fd=here)
            file.chmod(0o644)
            with unprivileged():
                os.close(os.open("file", os.O_RDONLY, dir_fd=here))


def entries_of_set_group_id_directories_inherit_the_group(workdir: Path) -> None:
    os.chown(workdir, 0, 4321)
    workdir.chmod(0o2775)
    with with_umask(0o022):
        (workdir / "file").touch()
        (workdir / "directory").mkdir()
        (workdir / "directory" / "inner").mkdir()
        (workdir / "link").symlink_to("x")
        os.mkfifo(workdir / "fifo")
    found = {name: (workdir / name).lstat() for name in ("file", "directory", "directory/inner", "link", "fifo")}
    assert {info.st_gid for info in found.values()} == {4321}
    assert {name for name, info in found.items() if info.st_mode & stat.S_ISGID} == {"directory", "directory/inner"}
    workdir.chmod(0o755)
    (workdir / "later").mkdir()
    assert (workdir / "later").stat().st_gid == 0


def sticky_directories_protect_the_files_of_other_users(workdir: Path) -> None:
    workdir.chmod(0o1777)
    (workdir / "mine").touch()
    with opened(workdir, os.O_RDONLY) as here:
        with unprivileged():
            with refused(EPERM):
                os.unlink("mine", dir_fd=here)
            with refused(EPERM):
                os.rename("mine", "yours", src_dir_fd=here, dst_dir_fd=here)
            os.close(os.open("theirs", os.O_CREAT | os.O_WRONLY, dir_fd=here))
            os.unlink("theirs", dir_fd=here)
        workdir.chmod(0o777)
        with unprivileged():
            os.unlink("mine", dir_fd=here)


def a_write_by_another_user_clears_set_user_id(workdir: Path) -> None:
    workdir.chmod(0o755)
    file = workdir / "file"
    file.touch()
    os.chown(file, 1000, 1000)
    file.chmod(0o6777)
    with opened(workdir, os.O_RDONLY) as here, unprivileged():
        fd = os.open("file", os.O_WRONLY, dir_fd=here)
        os.write(fd, b"content")
        os.close(fd)
    assert permissions(file) == 0o777
    assert file.read_bytes() == b"content"


def a_truncation_on_open_by_another_user_clears_set_user_id(workdir: Path) -> None:
    workdir.chmod(0o755)
    modes = {"both": (0o6777, 0o777), "no group execute": (0o6767, 0o767), "plain": (0o666, 0o666)}
    for name, (before, _) in modes.items():
        (workdir / name).write_bytes(b"content")
        os.chown(workdir / name, 1000, 1000)
        (workdir / name).chmod(before)
    with opened(workdir, os.O_RDONLY) as here, unprivileged():
        for name in modes:
            os.close(os.open(name, os.O_WRONLY | os.O_TRUNC, dir_fd=here))
    assert {name: permissions(workdir / name) for name in modes} == {name: after for name, (_, after) in modes.items()}
    assert all((workdir / name).stat().st_size == 0 for name in modes)


def a_truncation_on_open_by_a_member_of_the_group_keeps_a_set_group_id_without_group_execute(workdir: Path) -> None:
    """Without it the bit once meant mandatory locking (:manpage:`inode(7)`)."""
    workdir.chmod(0o755)
    groups = {"first": NOBODY, "supplementary": 1000, "other": 1001}
    for name, gid in groups.items():
        (workdir / name).touch()
        os.chown(workdir / name, NOBODY, gid)
        (workdir / name).chmod(0o6767)
    with opened(workdir, os.O_RDONLY) as here, unprivileged(groups=[1000]):
        for name in groups:
            os.close(os.open(name, os.O_WRONLY | os.O_TRUNC, dir_fd=here))
    assert {name: permissions(workdir / name) for name in groups} == {
        "first": 0o2767,
        "supplementary": 0o2767,
        "other": 0o767,
    }


def a_truncation_on_open_by_the_superuser_keeps_set_user_id(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"content")
    file.chmod(0o6755)
    file.write_bytes(b"")
    assert permissions(file) == 0o6755


def a_change_of_owner_clears_set_user_id(workdir: Path) -> None:
    """chown(2) requires it for an unprivileged caller. The kernel does it for root too."""
    file = workdir / "file"
    file.touch()
    os.chown(file, NOBODY, NOBODY)
    file.chmod(0o6755)
    workdir.chmod(0o755)
    with opened(workdir, os.O_RDONLY) as here, unprivileged():
        os.chown("file", -1, NOBODY, dir_fd=here)
    assert permissions(file) == 0o755


def set_user_id_programs_run_as_their_owner(workdir: Path) -> None:
    program = workdir / "id"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    os.chown(program, 4242, 4343)
    program.chmod(0o6755)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert "euid=4242" in printed
    assert "egid=4343" in printed


def programs_need_the_executable_bit(workdir: Path) -> None:
    script = workdir / "script"
    script.write_text("#!/bin/sh\necho it runs\n")
    with refused(EACCES):
        subprocess.run([script], check=True)
    script.chmod(0o755)
    assert subprocess.run([script], capture_output=True, check=True).stdout == b"it runs\n"
