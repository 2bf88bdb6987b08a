"""Mounts that another mount namespace has too, as a container does, and mounts that are busy when they are removed."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.mount.other_process import OtherProcess, other_process
from tests.support.cli import detached, failure, mounts_at, statuses, success
from tests.support.mounted import PATIENCE, Mounted, MountFactory, wait_until
from tests.support.namespaces import Namespace, kept_namespace, namespace
from tests.support.servers import RedisServer
from vfsd.host.keepers import UNSEEN
from vfsd.host.processes import process_name


def _unmounted(mounted: Mounted, held_by: str, remedy: str = "") -> str:
    """Return what a command says about *mounted*, which is unmounted here, and held all the same."""
    return (
        f"{mounted.path} is unmounted here, but its daemon (pid {mounted.pid}) goes on: held by {held_by};"
        f" end that{remedy}, or let vfsd mount take scope {mounted.scope} back"
    )


def _held(mounted: Mounted, holder: Namespace) -> str:
    remedy = f" (nsenter --target {holder.pid} --mount umount {mounted.path})"
    return _unmounted(mounted, f"sh ({holder.pid}) at {mounted.path} in another mount namespace", remedy)


def test_a_mount_held_by_another_namespace_names_it_and_stays_listed(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    with namespace(mounted.path) as holder:
        assert failure(mounted.vfsd("umount", str(mounted.path)), 11) == _held(mounted, holder)
        assert mounts_at(mounted.path) == []
        (entry,) = statuses(mounted, mounted.path)
        assert (entry["state"], entry["pid"], entry["scope"]) == ("detached", mounted.pid, mounted.scope)
        held_by = f"sh ({holder.pid}) at {mounted.path} in another mount namespace"
        assert entry["held_by"] == held_by
        listed = success(mounted.vfsd("status"))
        assert f"detached, held by {held_by}; vfsd mount takes the scope back\n" in listed
        assert failure(mounted.vfsd("umount", str(mounted.path)), 11) == _held(mounted, holder)
        remedy = re.search(r"\((nsenter .*?)\)", _held(mounted, holder))
        assert remedy is not None
        subprocess.run(shlex.split(remedy[1]), check=True)
        assert mounted.wait() == 0
    assert statuses(mounted, mounted.path) == []
    assert "no vfsd mount there" in failure(mounted.vfsd("umount", str(mounted.path)), 12)


def _assert_held(mounted: Mounted, held_by: str, remedy: str = "") -> None:
    """Unmount *mounted*, and assert that every command says that *held_by* holds it, and suggests *remedy*."""
    line = _unmounted(mounted, held_by, remedy)
    assert failure(mounted.vfsd("umount", "--timeout", "1", str(mounted.path)), 11) == line
    (entry,) = statuses(mounted, mounted.path)
    assert (entry["state"], entry["held_by"]) == ("detached", held_by)
    assert f"detached, held by {held_by}; vfsd mount" in success(mounted.vfsd("status"))
    assert failure(mounted.vfsd("umount", str(mounted.path)), 11) == line
    assert (
        failure(mounted.vfsd("destroy", "--yes", mounted.scope), 7) == f"scope {mounted.scope} is still in use: {line}"
    )


def test_a_namespace_that_a_file_keeps_is_named_with_the_way_out(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path
) -> None:
    mounted, file = mount(redis_server.url), tmp_path / "kept" / "name space"
    with kept_namespace(mounted, file):
        command = f"nsenter --mount={shlex.quote(str(file))} umount {mounted.path}"
        _assert_held(mounted, f"a mount namespace without a process, which the file {file} keeps", f" ({command})")
        wait_until(lambda: "is unmounted, but still in use" in mounted.log.read_text(), "the line in the log")
        subprocess.run(["bash", "-c", command], check=True)
        assert mounted.wait() == 0
    assert statuses(mounted, mounted.path) == []


def test_a_kept_namespace_without_the_mount_is_not_named(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path
) -> None:
    other, mounted = mount(redis_server.url), mount(redis_server.url)
    with kept_namespace(other, tmp_path / "kept" / "other"), namespace(mounted.path) as holder:
        success(mounted.vfsd("umount", "--lazy", str(mounted.path)))
        assert failure(mounted.vfsd("umount", str(mounted.path)), 11) == _held(mounted, holder)


_KEEPERS_FOR_NOBODY = """
import os, sys
from vfsd.host.keepers import keepers
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
print(*(keeper.describe() for keeper in keepers(*sys.argv[1:])), sep="\\n")
"""


def test_a_kept_namespace_that_the_user_may_not_enter_is_named_as_a_guess(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path
) -> None:
    mounted, file = mount(redis_server.url), tmp_path / "kept" / "file"
    (device,) = [found.device for found in mounts_at(mounted.path)]
    with kept_namespace(mounted, file):
        success(mounted.vfsd("umount", "--lazy", str(mounted.path)))
        command = [sys.executable, "-c", _KEEPERS_FOR_NOBODY, device, str(mounted.path)]
        guesses = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert f"perhaps a mount namespace without a process, which the file {file} keeps\n" in guesses
    assert mounted.wait() == 0


def test_a_namespace_that_an_open_file_keeps_is_named_with_the_way_out(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    with namespace(mounted.path) as holder:
        kept = os.open(f"/proc/{holder.pid}/ns/mnt", os.O_RDONLY)
    try:
        file = f"/proc/{os.getpid()}/fd/{kept}"
        command = f"nsenter --mount={file} umount {mounted.path}"
        _assert_held(mounted, f"a mount namespace without a process, which the file {file} keeps", f" ({command})")
        subprocess.run(["bash", "-c", command], check=True)
        assert mounted.wait() == 0
    finally:
        os.close(kept)


def test_what_holds_a_mount_and_cannot_be_seen_is_not_called_an_open_file(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    """A namespace that is under way through a socket: no process has it, and no file."""
    mounted = mount(redis_server.url)
    sending, receiving = socket.socketpair()
    with sending, receiving:
        with namespace(mounted.path) as holder:
            kept = os.open(f"/proc/{holder.pid}/ns/mnt", os.O_RDONLY)
        socket.send_fds(sending, [b"."], [kept])
        os.close(kept)
        _assert_held(mounted, UNSEEN)
    assert mounted.wait() == 0


@pytest.mark.parametrize(("program", "how"), [("hold_open", "which has a file"), ("sit_in", "whose current")])
def test_after_a_lazy_unmount_the_program_that_uses_it_is_named(
    mount: MountFactory, redis_server: RedisServer, program: str, how: str
) -> None:
    mounted = mount(redis_server.url)
    target = mounted.path / "target"
    target.mkdir()
    with other_process(program, target) as holder:
        holder.read_line()
        success(mounted.vfsd("umount", "--lazy", str(mounted.path)))
        with mounted.frozen():  # nothing asks the daemon
            line = failure(mounted.vfsd("umount", str(mounted.path)), 11)
            (entry,) = statuses(mounted, mounted.path)
        assert entry["held_by"].startswith(f"{process_name(holder.pid)}, {how}")
        assert line == _unmounted(mounted, entry["held_by"])
    assert mounted.wait() == 0


_MAP = """
import mmap, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
mapped = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
os.close(descriptor)
os.closerange(3, 64)
print("mapped", flush=True)
sys.stdin.read()
"""
"""Maps a file, and has no descriptor of it: Python's mapping has one of its own."""


def test_after_a_lazy_unmount_a_program_that_maps_a_file_is_named(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    with subprocess.Popen(
        [sys.executable, "-c", _MAP, mounted.path / "file"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"mapped\n"
        success(mounted.vfsd("umount", "--lazy", str(mounted.path)))
        (entry,) = statuses(mounted, mounted.path)
        assert entry["held_by"] == f"{process_name(process.pid)}, which has a file of it open"
    assert mounted.wait() == 0


@pytest.mark.parametrize("kind", ["redis", "sqlite"])
def test_destroy_names_who_keeps_a_scope_that_is_unmounted(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path, kind: str
) -> None:
    mounted = mount(redis_server.url if kind == "redis" else f"sqlite:{tmp_path}/scopes.db")
    (mounted.path / "file").touch()
    with other_process("hold_open", mounted.path / "file") as holder:
        assert holder.read_line() == "open"
        success(mounted.vfsd("umount", "--lazy", str(mounted.path)))
        line = failure(mounted.vfsd("destroy", "--yes", mounted.scope), 7)
        held_by = f"{process_name(holder.pid)}, which has a file of it open"
        assert line == f"scope {mounted.scope} is still in use: {_unmounted(mounted, held_by)}"
    assert mounted.wait() == 0
    assert success(mounted.vfsd("destroy", "--yes", mounted.scope)) == f"destroyed scope {mounted.scope}\n"


@pytest.mark.parametrize("elsewhere", [False, True], ids=["at the same place", "elsewhere"])
@pytest.mark.parametrize("held", ["namespace", "kept namespace", "open file"])
def test_mount_takes_back_a_scope_whose_mount_was_removed(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path, held: str, *, elsewhere: bool
) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    holding: AbstractContextManager[Namespace | OtherProcess | None]
    if held == "open file":
        holding = other_process("hold_open", mounted.path / "file")
    elif held == "namespace":
        holding = namespace(mounted.path)
    else:
        holding = kept_namespace(mounted, tmp_path / "kept" / "file")
    with holding as holder:
        if isinstance(holder, OtherProcess):
            assert holder.read_line() == "open"
        success(mounted.vfsd("umount", "--lazy", str(mounted.path)))
        (entry,) = statuses(mounted, mounted.path)
        assert entry["state"] == "detached"
        again = mount(redis_server.url, scope=mounted.scope, start=False)
        if not elsewhere:
            again.path = mounted.path
        again.start()
        assert mounted.wait() == 0
        assert f"took scope {mounted.scope} back: its daemon (pid {mounted.pid})" in again.log.read_text()
        assert (again.path / "file").read_bytes() == b"content"
        (again.path / "new").touch()
    assert again.stop() == 0


def test_a_daemon_that_is_mounted_in_its_own_namespace_is_not_ended(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    """A command in a container may not see the mount, although nobody removed it."""
    mounted = mount(redis_server.url)
    second = mount(redis_server.url, scope=mounted.scope, start=False)
    hidden = 'umount -l "$1"; shift; exec "$@"'
    command = ["unshare", "--mount", "sh", "-ec", hidden, "sh", str(mounted.path), sys.executable, "-m", "vfsd"]
    arguments = ["mount", "--foreground", str(second.path), "--scope", mounted.scope]
    ended = subprocess.run(
        [*command, *arguments], env=mounted.environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert ended.returncode == 7, ended.stderr
    listed = subprocess.run([*command, "status", "--json"], env=mounted.environment, capture_output=True, check=True)
    assert str(mounted.path).encode() not in listed.stdout
    (mounted.path / "file").touch()
    assert mounted.stop() == 0


@pytest.mark.parametrize("first", ["old", "new"])
def test_a_detached_daemon_and_a_new_mount_at_its_place_end_apart(
    mount: MountFactory, redis_server: RedisServer, first: str
) -> None:
    old, new = mount(redis_server.url), mount(redis_server.url, start=False)
    (old.path / "file").touch()
    new.path = old.path
    with other_process("hold_open", old.path / "file") as holder:
        assert holder.read_line() == "open"
        success(old.vfsd("umount", "--lazy", str(old.path)))
        new.start()
        states = {entry["scope"]: entry["state"] for entry in statuses(old, old.path)}
        assert states == {old.scope: "detached", new.scope: "mounted"}
        ending, staying = (old, new) if first == "old" else (new, old)
        assert ending.signal(signal.SIGTERM) == 0
        assert [entry["scope"] for entry in statuses(old, old.path)] == [staying.scope]
        assert len(mounts_at(old.path)) == (1 if staying is new else 0)
        assert staying.signal(signal.SIGTERM) == 0
    assert list((new.path.parent / "run").iterdir()) == []


# --- a container


def test_a_container_sees_a_restarted_daemon_if_it_has_the_directory_above(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path
) -> None:
    """docs/install.md, "In another container": the directory above the mountpoint, with propagation from the host.

    The mountpoint itself, bound as a container binds by default, stays the dead mount.
    """
    above = tmp_path / "above"
    above.mkdir()
    subprocess.run(["mount", "--bind", above, above], check=True)
    subprocess.run(["mount", "--make-shared", above], check=True)
    try:
        mounted = mount(redis_server.url, start=False)
        mounted.path = above / "run"
        mounted.start()
        (mounted.path / "file").write_text("before")
        bind = f"""
        cd {shlex.quote(str(tmp_path))}; mkdir slave alone
        mount --rbind above slave; mount --make-rslave slave
        mount --bind above/run alone; mount --make-private alone
        umount above/run
        """
        with namespace(mounted.path, bind, propagation="slave") as container:
            assert container.run("cat", tmp_path / "slave/run/file") == "before"
            assert container.run("cat", tmp_path / "alone/file") == "before"
            mounted.kill()
            mounted.start()
            (mounted.path / "file").write_text("after")
            assert container.run("cat", tmp_path / "slave/run/file") == "after"
            assert "not connected" in container.run("cat", tmp_path / "alone/file")
            success(mounted.vfsd("umount", str(mounted.path)))  # the container's view goes along, so nothing holds it
            assert "No such file" in container.run("cat", tmp_path / "slave/run/file")
    finally:
        mounted.clean_up()
        subprocess.run(["umount", above], check=True)


# --- the current directory


_UNTIL_DEAD = "until ! ls . 2>/dev/null; do :; done"


def _in(directory: Path, mounted: Mounted, script: str) -> subprocess.CompletedProcess[str]:
    """Run the shell *script* in *directory*. ``$VFSD`` is the command.

    With -P, Python does not look for modules in the current directory, which may be a dead mount.
    """
    environment = {**mounted.environment, "VFSD": f"{sys.executable} -P -m vfsd", "PYTHONPATH": os.getcwd()}
    return subprocess.run(
        ["sh", "-c", script], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("named", [".", "$PWD", "../mnt0"])
def test_the_callers_own_directory_is_named_as_that(mount: MountFactory, redis_server: RedisServer, named: str) -> None:
    mounted = mount(redis_server.url)
    result = _in(mounted.path, mounted, f"echo $$; $VFSD umount {named}")
    assert result.returncode == 11
    pid = result.stdout.strip()
    assert result.stderr == (
        f"vfsd: {mounted.path} is busy: held by the current directory of sh ({pid}), which called this command;"
        f" cd out of it, or detach it with vfsd umount --lazy {mounted.path}\n"
    )
    result = _in(mounted.path, mounted, f"exec $VFSD umount {named}")  # this command alone is there, and leaves
    assert success(result) == f"unmounted {mounted.path}\n"


def test_a_directory_in_a_mount_is_not_the_mount(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "sub").mkdir()
    line = f"{mounted.path}/sub: no vfsd mount there; it lies in the mount at {mounted.path}: name that"
    with mounted.frozen():  # nothing asks the daemon
        assert failure(mounted.vfsd("umount", f"{mounted.path}/sub"), 12) == line
    assert failure(_in(mounted.path / "sub", mounted, "$VFSD umount ."), 12) == line


def test_a_dead_mount_can_be_removed_from_within(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    script = f"kill -9 {mounted.pid}; {_UNTIL_DEAD}; $VFSD umount . && $VFSD umount ."
    result = _in(mounted.path, mounted, script)
    mounted.wait()
    assert result.stdout.splitlines()[-1] == f"unmounted {mounted.path}"
    assert result.stderr.startswith("vfsd: .: the current directory cannot be told: "), result.stderr
    assert result.stderr.endswith("; cd elsewhere, or give an absolute path\n")
    assert result.returncode == 9


def test_a_dead_mount_can_be_mounted_again_from_within(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    script = f"kill -9 {mounted.pid}; {_UNTIL_DEAD}; $VFSD mount . --scope {mounted.scope} --log-file {mounted.log}"
    with detached(mounted):
        assert (
            success(_in(mounted.path, mounted, script)) == f"scope {mounted.scope} mounted at {mounted.path}, 1 file\n"
        )
        assert (mounted.path / "file").read_bytes() == b"content"
        success(mounted.vfsd("umount", str(mounted.path)))


_AS_NOBODY = """
import os, sys
import vfsd.cli.umount
from vfsd.cli import main
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
sys.argv = ["vfsd", "umount", sys.argv[1]]
main()
"""


def test_another_users_mount_is_refused_with_the_reason(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    command = [sys.executable, "-c", _AS_NOBODY, str(mounted.path)]
    result = subprocess.run(command, env=mounted.environment, capture_output=True, text=True, check=False)
    assert failure(result, 9) == f"{mounted.path}: uid 0 has mounted it: only that user or root can unmount it"
    assert mounted.is_mounted()
