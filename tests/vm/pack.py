# SPDX-License-Identifier: GPL-2.0-only
"""Makes the initramfs of a guest: busybox, init, the list of tests, and the files they need."""

import os
import shutil
import subprocess

import driver
import host

VM = host.TOP / "tests/vm"


def copy(files, directory):
    """Copy files to a directory, except those that do not exist and dependency files of make."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in files:
        if file.is_file() and file.suffix != ".d":
            shutil.copy(file, directory)


def contents(hwt, tests, tree, programs):
    """Copy the files that tests.sh needs below @hwt."""
    copy([VM / "tests.sh", VM / "lib.sh"], hwt)
    (hwt / "list").write_text("".join(test.line() + "\n" for test in tests), encoding="ascii")
    copy((host.TOP / "tools").glob("*.bt"), hwt / "tools")
    copy([host.TOP / "commands/demo.sh"], hwt / "scripts")
    for folder in ("tests/kernel", "tests/user", "tests/user/lib", "tests/torture"):
        copy([*(host.TOP / folder).glob("*.sh"), *(host.TOP / folder).glob("*.inc")], hwt / "scripts")
    for folder, to in (("tests/user", "scripts"), ("samples", "scripts"), ("python/hwt", "python/hwt")):
        copy((host.TOP / folder).glob("*.py"), hwt / to)
    copy(wanted(programs.iterdir(), tests, "tests/user/*.c") if programs else (), hwt / "bin")
    for folder in (".", "samples", "tests/kernel", "tests/kernel/lib", "bench", "tests/torture"):
        copy(wanted((tree / folder).glob("*.ko"), tests, "tests/kernel/test_*.c") if tree else (), hwt / "modules")


def fill(root, kernel, tests, tree, programs):
    """Copy all files of the initramfs below @root."""
    for name in ("bin", "dev"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox") if kernel.arch == "x86_64" else kernel.dir / "busybox"
    shutil.copy(busybox, root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    shutil.copy(VM / "init", root / "init")
    (root / "init").chmod(0o755)
    contents(root / "hwt", tests, tree, programs)
    # Modules for a disk, if a test needs one.
    if any(test.disk for test in tests):
        copy((kernel.dir / "modules").iterdir(), root / "hwt/disk")
    for name, file in driver.files(kernel, tests, tree).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, root / name)


def wanted(files, tests, pattern):
    """Return the files without the tests that are not run: all would add a second to each boot."""
    run = {test.file.removesuffix(".ko") for test in tests}
    # A script may call another test.
    texts = [path.read_text(encoding="utf-8") for test in tests if test.kind == "script"
             for path in host.TOP.glob(f"tests/*/{test.file}")]
    others = {path.stem + end for path in host.TOP.glob(pattern) for end in ("", "-32")}
    return [file for file in files if file.stem in run or file.stem not in others
            or any(file.stem in text for text in texts)]


def archive(root, output):
    """Make an initramfs of a directory, and remove the directory."""
    names = sorted(os.path.relpath(os.path.join(at, name), root)
                   for at, directories, files in os.walk(root) for name in directories + files)
    data = subprocess.run(["cpio", "--null", "-o", "-H", "newc", "--owner=0:0", "--quiet"], cwd=root, check=True,
                          input="\0".join(names).encode(), stdout=subprocess.PIPE).stdout
    with open(output, "wb") as file:
        subprocess.run(["gzip", "-1"], check=True, input=data, stdout=file)
    shutil.rmtree(root)


def initramfs(kernel, tests, output, tree=None, programs=None, overlay=None):
    """Write an initramfs.

    @tests: of listing.Test. @tree, @programs: directories of modules and programs, of build.py.
    @overlay: a directory that is copied over the root in the end.
    """
    root = output.with_suffix(".root")
    shutil.rmtree(root, ignore_errors=True)
    fill(root, kernel, tests, tree, programs)
    if overlay:
        shutil.copytree(overlay, root, dirs_exist_ok=True, symlinks=True)
    archive(root, output)
