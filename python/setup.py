"""The extension of the package, linked with an installed libperhaps (pkg-config), or with one that was built:

    PERHAPS_LIB_DIR=build/release pip install --no-build-isolation --no-deps ./python

The version is that of the library.
"""
import os
import re
import shlex
import subprocess
from pathlib import Path

from setuptools import Extension, setup

LIBRARY = os.environ.get("PERHAPS_LIB_DIR")
ROOT = Path(__file__).resolve().parent.parent


def asked(*what):
    done = subprocess.run(["pkg-config", *what, "perhaps"], check=True, capture_output=True, text=True)
    return shlex.split(done.stdout)


if LIBRARY:
    version = re.search(r"project\(perhaps VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    flags = [f"-I{ROOT / 'include'}"]
    links = [str(Path(LIBRARY).resolve() / "libperhaps.a"), "-lhwy", "-pthread", "-Wl,--exclude-libs,ALL"]
else:
    version = asked("--modversion")[0]
    flags, links = asked("--cflags"), asked("--libs")

setup(
    version=version,
    ext_modules=[
        Extension("perhaps._native", ["perhaps/_native.cc"], py_limited_api=True, extra_link_args=links,
                  extra_compile_args=["-std=c++20", "-O2", "-fvisibility=hidden", *flags]),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
