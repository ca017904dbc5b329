#!/usr/bin/env python3
"""Prints the Python of the environment that the tests of the wheel run in.

The environment is in the user's cache, in a folder named by the hash of `requirements.txt` and the version of Python. It is
made from PyPI the first time, which takes about half a minute, and works without a network from then on. Where it cannot
be made, the reason is the last line on stderr and the exit code is 1.
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "unitape"


def main():
    if sys.version_info < (3, 11):
        sys.exit(f"the tests need Python 3.11 or later, this is {sys.version.split()[0]}")
    facts = f"{sys.version} {sys.executable}\n".encode() + REQUIREMENTS.read_bytes()
    folder = cache() / f"python-{hashlib.sha256(facts).hexdigest()[:16]}"
    python, mark = folder / "bin" / "python3", folder / "complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        # Of two test runs one makes the environment, and the other waits for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists():
            print(f"making {folder}", file=sys.stderr)
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=False)
            paths = {"base": str(folder), "platbase": str(folder)}
            site = sysconfig.get_path("purelib", "venv", vars=paths)
            # Debian's Python comes without ensurepip, so the pip outside installs into the environment.
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            install += ["--only-binary", ":all:", "--target", site, "--requirement", str(REQUIREMENTS)]
            # pip warns root against installing into the system; this goes into a folder of ours.
            quiet = os.environ | {"PIP_ROOT_USER_ACTION": "ignore"}
            try:
                subprocess.run(install, check=True, env=quiet, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            except (OSError, subprocess.CalledProcessError) as error:
                sys.exit(f"the packages of {REQUIREMENTS.name} could not be installed from PyPI: {error}")
            mark.touch()
    print(python)


if __name__ == "__main__":
    main()
