"""What pip calls to make the wheel (PEP 517). CMake builds the extension, with the library inside, as for
`make python`; no package has to be fetched.

PERHAPS_BUILD_DIR is a folder that CMake has configured already, in which less remains to be built.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
METADATA = """Metadata-Version: 2.1
Name: perhaps
Version: {}
Summary: Approximate membership: could this key be in that set?
License: MIT
Requires-Python: >=3.11
"""
WHEEL = """Wheel-Version: 1.0
Generator: perhaps
Root-Is-Purelib: false
Tag: {}
"""


def built():
    """The folder of the package."""
    folder = os.environ.get("PERHAPS_BUILD_DIR")
    if folder is None:
        folder = ROOT / "build" / "pip"
        without = ("CLI", "INSTALL", "LEVELDB", "REDIS", "ROCKSDB", "SHARED", "TESTS")
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
                        "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF", "-DPERHAPS_PYTHON=ON",
                        f"-DPERHAPS_PYTHON_EXECUTABLE={sys.executable}",
                        *(f"-DPERHAPS_{part}=OFF" for part in without)], check=True)
    subprocess.run(["cmake", "--build", folder, "--parallel", str(os.cpu_count()), "--target", "perhaps_python"],
                   check=True)
    return Path(folder) / "python" / "perhaps"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = re.search(r"project\(perhaps VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    tag = "cp311-abi3-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    info = f"perhaps-{version}.dist-info"
    package = built()
    files = {f"perhaps/{name}": (package / name).read_bytes()
             for name in ("__init__.py", "_native.abi3.so", "_native.pyi", "py.typed")}
    files[f"{info}/METADATA"] = METADATA.format(version).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tag).encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = f"perhaps-{version}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return wheel
