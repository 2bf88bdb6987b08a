"""Unmodified programs that people and agents use, on a mount. Their files are complete after a remount."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mount.other_process import other_process
from tests.support.mounted import Mounted, mounting
from tests.support.servers import RedisServer


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer) -> Iterator[Mounted]:
    with mounting(tmp_path_factory.mktemp("workloads")) as factory:
        yield factory(redis_server.url)


@pytest.fixture
def workdir(mounted: Mounted, request: pytest.FixtureRequest) -> Path:
    """Return a new directory on the mount, named after the test."""
    path: Path = mounted.path / request.node.name
    path.mkdir()
    return path


def _run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a program that must succeed, and return its output."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def _git(cwd: Path, *arguments: str) -> str:
    """Run git without the configuration of this machine."""
    environment = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    identity = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "init.defaultBranch=main")
    return _run("git", *identity, *arguments, cwd=cwd, env=environment)


def _make_sources(workdir: Path, count: int = 60) -> None:
    """Make a small tree of source files."""
    for number in range(count):
        file = workdir / f"package{number % 7}" / f"module_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def f{number}():\n    return {number}\n" * (number + 1))
    (workdir / "run").write_text("#!/bin/sh\nexit 0\n")
    (workdir / "run").chmod(0o755)
    (workdir / "link").symlink_to("package0/module_0.py")


def test_git(mounted: Mounted, workdir: Path) -> None:
    repository = workdir / "repository"
    repository.mkdir()
    _git(repository, "init")
    _make_sources(repository)
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "-m", "first")
    assert _git(repository, "status", "--porcelain") == ""
    (repository / "package1" / "module_1.py").write_text("changed\n")
    (repository / "package2" / "module_2.py").unlink()
    assert _git(repository, "status", "--porcelain") == " M package1/module_1.py\n D package2/module_2.py\n"
    _git(repository, "commit", "--quiet", "--all", "-m", "second")
    _git(repository, "worktree", "add", "../worktree", "-b", "other")
    (workdir / "worktree" / "new").write_text("new\n")
    _git(workdir / "worktree", "add", "new")
    _git(workdir / "worktree", "commit", "--quiet", "-m", "third")
    _git(repository, "merge", "--quiet", "other")
    _git(repository, "rebase", "--quiet", "HEAD~1")
    _git(workdir, "clone", "--quiet", "repository", "clone")
    _git(repository, "gc", "--quiet", "--aggressive")
    for checkout in (repository, workdir / "clone", workdir / "worktree"):
        assert _git(checkout, "status", "--porcelain") == ""
        assert _git(checkout, "fsck", "--strict").strip() == ""
    mounted.remount()
    assert _git(repository, "status", "--porcelain") == ""
    assert _git(repository, "log", "--format=%s").split() == ["third", "second", "first"]
    assert _git(repository, "fsck", "--full", "--strict").strip() == ""


@pytest.mark.parametrize("mode", ["wal", "delete", "truncate"])
def test_sqlite_with_several_writers(mounted: Mounted, workdir: Path, mode: str) -> None:
    database = workdir / "database"
    printed = _run("sqlite3", database, f"PRAGMA journal_mode={mode}; CREATE TABLE lines (tag, number);", cwd=workdir)
    assert printed.strip() == mode
    with other_process("insert", database, "a", 40) as a, other_process("insert", database, "b", 40) as b:
        for writer in (a, b):
            assert writer.read_line() == "ready"
        for writer in (a, b):
            writer.resume()
        for writer in (a, b):
            writer.finish()
    check = "PRAGMA integrity_check; SELECT tag, COUNT(DISTINCT number) FROM lines GROUP BY tag;"
    assert _run("sqlite3", database, check, cwd=workdir).split() == ["ok", "a|40", "b|40"]
    mounted.remount()
    assert _run("sqlite3", database, check, cwd=workdir).split() == ["ok", "a|40", "b|40"]


def test_rsync_twice(workdir: Path, tmp_path: Path) -> None:
    source, copy, back = tmp_path / "source", workdir / "copy", tmp_path / "back"
    _make_sources(source)
    os.link(source / "run", source / "run too")
    os.utime(source / "run", ns=(1, 999_999_999_123_456_789))
    copying = ("rsync", "-aH", "--delete", "--itemize-changes")
    assert "cL+++++++++ link" in _run(*copying, f"{source}/", copy, cwd=workdir)
    assert _run(*copying, f"{source}/", copy, cwd=workdir) == ""
    assert _run(*copying, "--checksum", f"{source}/", copy, cwd=workdir) == ""
    (source / "package1" / "module_1.py").unlink()
    (copy / "package2" / "module_2.py").write_text("changed\n")
    changes = _run(*copying, f"{source}/", copy, cwd=workdir)
    assert "*deleting   package1/module_1.py" in changes
    assert ">f" in changes
    _run("rsync", "-aH", f"{copy}/", back, cwd=workdir)
    assert _run(*copying, "--checksum", f"{source}/", back, cwd=workdir) == ""


def test_tar_packs_and_unpacks(workdir: Path, tmp_path: Path) -> None:
    _make_sources(workdir / "source")
    os.mkfifo(workdir / "source" / "fifo")
    os.link(workdir / "source" / "run", workdir / "source" / "run too")
    os.chown(workdir / "source" / "run", 1234, 5678)
    _run("tar", "-cf", workdir / "archive.tar", "source", cwd=workdir)
    _run("tar", "--compare", "-f", workdir / "archive.tar", cwd=workdir)
    (workdir / "unpacked").mkdir()
    _run("tar", "-xpf", workdir / "archive.tar", "-C", workdir / "unpacked", cwd=workdir)
    _run("tar", "--compare", "-f", workdir / "archive.tar", cwd=workdir / "unpacked")
    _run("tar", "-xpf", workdir / "archive.tar", "-C", tmp_path, cwd=workdir)
    for copy in (workdir / "unpacked" / "source", tmp_path / "source"):
        assert _run("diff", "-r", "--no-dereference", "--exclude", "fifo", workdir / "source", copy, cwd=workdir) == ""
    assert (workdir / "unpacked" / "source" / "fifo").is_fifo()
    info = (workdir / "unpacked" / "source" / "run too").stat()
    assert (info.st_nlink, info.st_uid, info.st_gid) == (2, 1234, 5678)


def _wheel(directory: Path) -> Path:
    """Write a wheel of a tiny package with a script. It needs no network."""
    import zipfile  # noqa: PLC0415 (for this one helper)

    wheel = directory / "tiny-1.0-py3-none-any.whl"
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/__init__.py", "def main():\n    print('it runs')\n")
        archive.writestr("tiny/data/file.txt", "data\n" * 10_000)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        tags = "Wheel-Version: 1.0\nGenerator: by-hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/entry_points.txt", "[console_scripts]\ntiny = tiny:main\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def test_a_virtual_environment_and_pip(mounted: Mounted, workdir: Path) -> None:
    _run(sys.executable, "-m", "venv", workdir / "venv", cwd=workdir)
    pip = (workdir / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    _run(*pip, "install", "--no-index", _wheel(workdir), cwd=workdir)
    assert _run(workdir / "venv" / "bin" / "tiny", cwd=workdir) == "it runs\n"
    assert "tiny @ file:" in _run(*pip, "freeze", cwd=workdir)
    mounted.remount()
    assert _run(workdir / "venv" / "bin" / "tiny", cwd=workdir) == "it runs\n"
    _run(*pip, "uninstall", "--yes", "tiny", cwd=workdir)
    assert not (workdir / "venv" / "bin" / "tiny").exists()


def test_a_compiler(workdir: Path) -> None:
    (workdir / "part.c").write_text("int part(int x) { return x * 2; }\n")
    (workdir / "main.c").write_text(
        '#include <stdio.h>\nint part(int);\nint main(void) { printf("%d\\n", part(21)); return 0; }\n'
    )
    _run("gcc", "-c", "part.c", cwd=workdir)
    _run("gcc", "-c", "main.c", cwd=workdir)
    _run("gcc", "-o", "program", "main.o", "part.o", cwd=workdir)
    assert _run(workdir / "program", cwd=workdir) == "42\n"
    _run("gcc", "-shared", "-fPIC", "-o", "libpart.so", "part.c", cwd=workdir)
    load = "import ctypes; print(ctypes.CDLL('./libpart.so').part(4))"
    assert _run(sys.executable, "-c", load, cwd=workdir) == "8\n"


def test_the_python_standard_library(workdir: Path) -> None:
    """It makes copies, archives, temporary files and byte code."""
    script = """
import compileall, json, pathlib, shutil, sys, tempfile, zipfile
here = pathlib.Path.cwd()
source = pathlib.Path(sys.argv[1])
shutil.copytree(source, here / "json")
assert compileall.compile_dir(here / "json", quiet=2)
shutil.make_archive("archive", "gztar", here, "json")
shutil.unpack_archive("archive.tar.gz", here / "unpacked")
shutil.copy2(here / "json" / "decoder.py", here / "copy.py")
assert (here / "copy.py").stat().st_mtime_ns == (here / "json" / "decoder.py").stat().st_mtime_ns
with tempfile.NamedTemporaryFile(dir=here) as named, tempfile.TemporaryFile(dir=here) as nameless:
    named.write(b"x"), nameless.write(b"y"), nameless.seek(0)
    assert nameless.read() == b"y"
with zipfile.ZipFile("archive.zip", "w") as archive:
    archive.write("copy.py")
assert zipfile.ZipFile("archive.zip").testzip() is None
shutil.move(here / "unpacked" / "json", here / "moved")
shutil.rmtree(here / "json")
print(json.dumps(sorted(path.name for path in here.iterdir())))
"""
    library = Path(sysconfig.get_path("stdlib")) / "json"
    printed = _run(sys.executable, "-c", script, library, cwd=workdir)
    assert json.loads(printed) == ["archive.tar.gz", "archive.zip", "copy.py", "moved", "unpacked"]


def test_the_file_api_of_node(workdir: Path) -> None:
    script = """
const fs = require('fs'), path = require('path'), assert = require('assert');
(async () => {
  await fs.promises.mkdir('a/b/c', {recursive: true});
  await Promise.all([...Array(50).keys()].map(n => fs.promises.writeFile(`a/b/${n}.txt`, `content ${n}`)));
  assert.strictEqual((await fs.promises.readdir('a/b')).length, 51);
  await fs.promises.appendFile('a/b/1.txt', ' more');
  assert.strictEqual(fs.readFileSync('a/b/1.txt', 'utf8'), 'content 1 more');
  await fs.promises.cp('a', 'copy', {recursive: true, preserveTimestamps: true});
  fs.renameSync('copy/b', 'moved');
  fs.symlinkSync('moved/2.txt', 'link');
  fs.linkSync('moved/2.txt', 'hard');
  assert.strictEqual(fs.realpathSync('link'), path.resolve('moved/2.txt'));
  assert.strictEqual(fs.statSync('hard').nlink, 2);
  fs.utimesSync('hard', 1, 2.5);
  assert.strictEqual(fs.statSync('hard', {bigint: true}).mtimeNs, 2500000000n);
  fs.truncateSync('hard', 3);
  assert.strictEqual(fs.readFileSync('link', 'utf8'), 'con');
  assert.throws(() => fs.rmdirSync('moved'), {code: 'ENOTEMPTY'});
  assert.throws(() => fs.mkdirSync('moved'), {code: 'EEXIST'});
  await new Promise(done => fs.createReadStream('moved/3.txt').pipe(fs.createWriteStream('piped')).on('close', done));
  assert.strictEqual(fs.readFileSync('piped', 'utf8'), 'content 3');
  fs.rmSync('a', {recursive: true});
  console.log(fs.readdirSync('.').sort().join(' '));
})().catch(error => { console.error(error); process.exit(1); });
"""
    assert _run("node", "-e", script, cwd=workdir) == "copy hard link moved piped\n"


def test_shell_tools(workdir: Path) -> None:
    script = """
set -e
seq 1 2000 > numbers
sort -rn numbers | tee sorted | head -1
sed -i 's/^7$/seven/' numbers
grep -n seven numbers
cp -a numbers copy && cmp numbers copy
mkdir -p x/y/z && mv x w && find w | sort | tr '\\n' ' '
dd if=/dev/zero of=sparse bs=1 count=0 seek=1G status=none && du -k sparse | cut -f1
install -m 640 numbers installed && stat -c %a installed
split -n 4 sorted part. && cat part.* | cmp - sorted
for n in 1 2 3; do echo "$n" >> log; done; tail -n 1 log
rm -rf w part.* && ls | wc -l
"""
    printed = _run("sh", "-c", script, cwd=workdir)
    assert printed.split("\n") == ["2000", "7:seven", "w w/y w/y/z 0", "640", "3", "6", ""]
