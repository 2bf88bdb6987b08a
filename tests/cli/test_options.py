"""Options of ``vfsd mount``, and their effect for the kernel and for other users."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from errno import EACCES, EROFS
from pathlib import Path

import pytest

from tests.mount.other_process import other_process
from tests.support.cli import detached, failure, mount_options, mounts_at, success, summaries
from tests.support.files import NOBODY, opened, refused, unprivileged
from tests.support.mounted import MountFactory, run_vfsd
from tests.support.servers import RedisServer
from vfsd.cli.parsing import parse_mount_options
from vfsd.errors import UsageError
from vfsd.fuse.device import ENGINE_OPTIONS, MOUNT_RIGHTS, is_container


def test_the_mount_table_names_vfsd_and_the_scope(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    fstype, source, options = mount_options(mounted.path)
    assert (fstype, source) == ("fuse.vfsd", f"vfsd:{mounted.scope}")
    assert {"rw", "nosuid", "nodev", "default_permissions"} <= options
    assert "allow_other" not in options


@pytest.mark.parametrize(
    ("arguments", "present", "absent"),
    [
        (["-o", "ro"], {"ro"}, {"rw"}),
        (["-o", "noexec,noatime", "-o", "sync"], {"rw", "noexec", "noatime", "sync"}, set()),
        (["-o", "suid,dev,allow_other"], {"allow_other"}, {"nosuid", "nodev"}),
        (["-o", "rw,nodev"], {"rw", "nodev"}, set()),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, list) else "",
)
def test_options_reach_the_kernel(
    mount: MountFactory, redis_server: RedisServer, arguments: list[str], present: set[str], absent: set[str]
) -> None:
    mounted = mount(redis_server.url)
    if "ro" in present:  # a read-only mount needs an existing scope
        assert mounted.stop() == 0
        mounted = mount(redis_server.url, *arguments, scope=mounted.scope)
    else:
        mounted = mount(redis_server.url, *arguments)
    _, _, options = mount_options(mounted.path)
    assert present <= options
    assert not absent & options


@pytest.mark.parametrize(
    ("arguments", "present"),
    [
        (["-o", "suid,dev,nosuid"], {"rw", "nosuid"}),
        (["-o", "nosuid,suid", "-o", "nodev", "-o", "dev"], {"rw", "suid", "dev"}),
        (["-o", "noexec,exec,sync,async,noatime,sync"], {"rw", "exec", "noatime", "sync"}),
        (["-o", "ro,rw"], {"rw"}),
        (["--read-only", "-o", "rw"], {"rw"}),
        (["-o", "rw", "--read-only"], {"ro"}),
        (["-o", "rw,ro", "--read-only", "-o", "rw", "--allow-other"], {"rw", "allow_other"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_of_contradicting_options_the_last_one_wins(
    mount: MountFactory, redis_server: RedisServer, arguments: list[str], present: set[str]
) -> None:
    """The order of a set depends on the process, so each is mounted several times."""
    mounted = mount(redis_server.url)
    for _ in range(3):
        assert mounted.stop() == 0
        mounted.start(*arguments)
        _, _, options = mount_options(mounted.path)
        assert present - {"suid", "dev", "exec"} <= options
        opposites = {"rw": "ro", "ro": "rw", "suid": "nosuid", "dev": "nodev", "exec": "noexec"}
        assert not {opposites[name] for name in present & set(opposites)} & options


OPPOSITES = [
    ("ro", "rw"),
    ("sync", "async"),
    ("allow_root", "allow_other"),
    *((name, f"no{name}") for name in ("suid", "dev", "exec", "atime", "xyz")),
]


@pytest.mark.parametrize("pair", [*OPPOSITES, ("key=1", "key=2")], ids=",".join)
def test_the_last_of_each_pair_is_left_and_the_order_is_kept(pair: tuple[str, str]) -> None:
    for first, last in (pair, pair[::-1]):
        assert parse_mount_options((f"kernel_cache,{first}", f"nonempty,{last},dirsync")) == (
            *("kernel_cache", "nonempty", last),
            "dirsync",
        )


@pytest.mark.parametrize("option", ["suid", "dev"])
def test_auto_unmount_is_refused_with_what_it_takes_away(option: str) -> None:
    for options in ((f"{option},auto_unmount",), ("auto_unmount", option)):
        with pytest.raises(UsageError, match=f"^-o {option}: with auto_unmount fusermount3 mounts, without {option}"):
            parse_mount_options(options)
    assert parse_mount_options((f"{option},auto_unmount,no{option}",)) == ("auto_unmount", f"no{option}")


@pytest.mark.parametrize("option", ["fsname=x", "subtype=x", "max_read=8"])
def test_an_option_that_vfsd_needs_itself_is_refused(tmp_path: Path, option: str) -> None:
    result = run_vfsd("mount", str(tmp_path / "mnt"), "--scope=run", "-o", option, env=dict(os.environ))
    assert failure(result, 2).startswith(f"-o {option}: vfsd sets {option.partition('=')[0]} itself")


def test_an_unknown_mount_option_is_refused_with_a_message(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    mounted.path.mkdir()
    mounted.expected.append("unknown option")
    with detached(mounted) as daemon:
        result = daemon.mount("-o", "nonsense")
        assert result.returncode == 2
        line = result.stderr.splitlines()[-1]
        assert re.match(r"vfsd: -o nonsense: .*unknown option.*nonsense.*; correct it, or leave it out", line)
        assert mounts_at(mounted.path) == []
        success(daemon.mount())  # the failed attempt has released the scope


_IN_A_CONTAINER = 'mount -t tmpfs none /run; touch /run/.containerenv; exec "$@"'
NO_RIGHTS = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin")
NO_DEVICE = (
    *("unshare", "--mount", "sh", "-ec"),
    'mount --bind /dev/fuse /dev/fuse; mount -o remount,bind,nodev /dev/fuse; exec "$@"',
    "sh",
)


@pytest.mark.parametrize("in_container", sorted({is_container(), True}))
@pytest.mark.parametrize("lacking", [NO_RIGHTS, NO_DEVICE], ids=["rights", "device"])
def test_if_nothing_can_be_mounted_the_error_says_what_to_change_there(
    lacking: tuple[str, ...], in_container: bool, mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url, start=False)
    mounted.path.mkdir()
    command = [*lacking, sys.executable, "-m", "vfsd", "mount", "-f", os.fspath(mounted.path)]
    command += ["--scope", mounted.scope, "--store", mounted.store]
    if in_container and not is_container():
        command = ["unshare", "--mount", "sh", "-ec", _IN_A_CONTAINER, "sh", *command]
    ended = subprocess.run(command, env=mounted.environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 10, ended.stderr
    last = ended.stderr.splitlines()[-1]
    on_host = MOUNT_RIGHTS if lacking is NO_RIGHTS else "chmod 0666 /dev/fuse"
    assert (ENGINE_OPTIONS in last, on_host in last) == (in_container, not in_container)
    assert mounts_at(mounted.path) == []
    if lacking is NO_DEVICE:  # detected before the scope is claimed
        assert mounted.scope not in mounted.vfsd("scopes").stdout


def test_noexec_forbids_execution(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, "-o", "noexec")
    script = mounted.path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    with refused(EACCES):
        os.execv(script, ["script"])  # if it worked, it would replace the test run


@pytest.mark.parametrize("option", [["--read-only"], ["-o", "ro"]], ids=["--read-only", "-o ro"])
def test_a_read_only_mount_reads_and_claims_nothing(
    mount: MountFactory, redis_server: RedisServer, option: list[str]
) -> None:
    writer = mount(redis_server.url)
    (writer.path / "file").write_bytes(b"content")
    (writer.path / "link").symlink_to("file")
    reader = mount(redis_server.url, *option, scope=writer.scope)
    assert (reader.path / "link").read_bytes() == b"content"
    calls: tuple[Callable[[], object], ...] = (
        lambda: (reader.path / "file").write_bytes(b"x"),
        (reader.path / "new").touch,
        (reader.path / "new").mkdir,
        (reader.path / "file").unlink,
        lambda: (reader.path / "file").chmod(0),
        lambda: os.utime(reader.path / "file", (0, 0)),
        lambda: (reader.path / "file").rename(reader.path / "other"),
        lambda: os.link(reader.path / "file", reader.path / "other"),
        lambda: os.truncate(reader.path / "file", 0),
    )
    for call in calls:
        with refused(EROFS):
            call()
    (writer.path / "file").write_bytes(b"changed later")
    assert (reader.path / "file").read_bytes() == b"content"
    (entry,) = [entry for entry in summaries(writer) if entry["scope"] == writer.scope]
    assert entry["owner"]["pid"] == writer.pid
    reader.remount()
    assert (reader.path / "file").read_bytes() == b"changed later"


def test_a_missing_scope_cannot_be_mounted_read_only(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    mounted.path.mkdir()
    mounted.expected.append("there is no scope")
    with detached(mounted) as daemon:
        result = daemon.mount("--read-only")
    assert result.returncode == 6
    assert result.stderr.splitlines()[-1].startswith(f"vfsd: there is no scope {mounted.scope} in the store")


def test_owner_is_shown_for_every_file(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, "--owner", "1234:5678")
    (mounted.path / "file").touch()
    (mounted.path / "link").symlink_to("file")
    os.chown(mounted.path / "file", 1, 2)
    for path in (mounted.path, mounted.path / "file", mounted.path / "link"):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (1234, 5678)
    assert mounted.stop() == 0
    plain = mount(redis_server.url, scope=mounted.scope)
    assert ((plain.path / "file").stat().st_uid, (plain.path / "file").stat().st_gid) == (1, 2)


@pytest.mark.parametrize("owner", ["me", "1000", "1000:", ":1000", "-1:0", "1:2:3", "4294967295:0", "²:0"])
def test_a_bad_owner_is_refused(tmp_path: Path, owner: str) -> None:
    result = run_vfsd("mount", str(tmp_path / "mnt"), "--scope=run", f"--owner={owner}", env=dict(os.environ))
    assert failure(result, 2).startswith(f"--owner {owner}: expected UID:GID")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--store="], "--store is empty: "),
        (["--store= "], "--store is empty: "),
        (["--store-timeout=-1"], "--store-timeout -1: expected seconds, "),
        (["--store-timeout=0"], "--store-timeout 0: expected seconds, "),
        (["--store-timeout=nan"], "--store-timeout nan: expected seconds, "),
        (["--store-timeout=inf"], "--store-timeout inf: expected seconds, "),
        (["--fsync=wait:²"], "--fsync wait:²: expected none, wait:N "),
        (["--fsync=wait:0"], "--fsync wait:0: expected none, wait:N "),
        (
            ["--fsync=wait:1", "--store=sqlite:/nowhere/db"],
            "--fsync wait:1: only a Redis store can do that; sqlite: ",
        ),
        (["--fsync=waitaof", "--store=memory:"], "--fsync waitaof: only a Redis store can do that; memory: "),
        (["--max-bytes=9999999T"], "--max-bytes 9999999T: too large: "),
        (["--max-bytes=²"], "--max-bytes ²: not a size: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_value_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    result = run_vfsd("mount", str(tmp_path / "mnt"), "--scope=run", *options, env=dict(os.environ))
    assert failure(result, 2).startswith(message)
    assert not (tmp_path / "mnt").exists()


@pytest.mark.parametrize("count", ["-5", "9223372036854775808", "many"])
def test_a_bad_number_of_files_is_refused(tmp_path: Path, count: str) -> None:
    result = run_vfsd("mount", str(tmp_path / "mnt"), "--scope=run", f"--max-files={count}", env=dict(os.environ))
    assert (result.returncode, result.stdout) == (2, "")
    assert "Invalid value for '--max-files': " in result.stderr
    assert not (tmp_path / "mnt").exists()


def test_an_empty_vfsd_store_variable_means_the_default_store(tmp_path: Path) -> None:
    environment = {**os.environ, "VFSD_STORE": "", "VFSD_RUNTIME_DIR": str(tmp_path)}
    command = ["unshare", "--net", sys.executable, "-m", "vfsd", "scopes"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert failure(result, 3).startswith("cannot reach the store redis://127.0.0.1:6379/0: ")


def test_other_users_have_access_only_with_allow_other(mount: MountFactory, redis_server: RedisServer) -> None:
    closed, open_ = mount(redis_server.url), mount(redis_server.url, "--allow-other")
    for mounted in (closed, open_):
        mounted.path.chmod(0o755)
        (mounted.path / "file").touch()
    for mounted, expected in ((closed, "PermissionError"), (open_, "file")):
        with other_process("look_as", mounted.path, NOBODY) as actor:
            assert actor.read_line() == expected
            actor.finish()
    open_.path.chmod(0o700)
    with opened(open_.path, os.O_RDONLY) as here, unprivileged(), refused(EACCES):
        os.stat("file", dir_fd=here)


def test_the_root_of_a_new_scope_belongs_to_the_user_who_mounted_it(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    info = mounted.path.stat()
    assert (info.st_uid, info.st_gid) == (os.geteuid(), os.getegid())
    assert stat.S_IMODE(info.st_mode) == 0o755


def test_debug_logs_every_request(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, "--debug")
    (mounted.path / "directory").mkdir()
    file = mounted.path / "directory" / "file"
    file.write_bytes(b"secret" * 100)
    with opened(file, os.O_RDONLY) as fd:
        os.pread(fd, 10, 0)
    file.rename(mounted.path / "directory" / "renamed")
    with refused(2):
        os.rmdir(mounted.path / "missing")
    assert mounted.stop() == 0
    log = mounted.log.read_text()
    for pattern in (
        r"mkdir / directory 0?o?\d+ uid=0 pid=\d+ -> ino=2 mode=40755 size=0 nlink=2 \(\d+ us\)",
        r"create /directory file .* -> fh=\d+ ino=3 mode=100644 size=0 nlink=1 \(\d+ us\)",
        r"write /directory/file fh=\d+ 0 \[600 bytes\] -> 600 \(\d+ us\)",
        r"rename /directory file #?\S* ?renamed .* -> ok \(\d+ us\)",
        r"lookup / missing .* -> ino=0 ",
    ):
        assert re.search(pattern, log), pattern
    assert "secret" not in log


def test_without_debug_requests_are_not_logged(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, "-v")
    (mounted.path / "directory").mkdir()
    assert mounted.stop() == 0
    assert "mkdir" not in mounted.log.read_text()
