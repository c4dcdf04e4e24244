"""Builds the wheel of the Python package: wheel.py KILN FOLDER, in the root of the source tree.

The wheel holds the package, the kiln executable without its symbols, and the headers for hosts. The same inputs give the
same bytes. Its tag names the newest glibc that the executable asks for; `auditwheel show` says the same.
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = pathlib.Path("aot/python/kiln")
HEADERS = ("kiln.h", "kiln_host.h", "types.h")
LINKED = ("libabsl-dev", "libprotobuf-dev", "libzstd-dev", "llvm-19-dev", "zlib1g-dev")
DISTRIBUTION = "kiln_aot"
TIME = (2020, 1, 1, 0, 0, 0)  # of every file

METADATA = """Metadata-Version: 2.1
Name: kiln-aot
Version: {version}
Summary: Ahead-of-time compiler of JAX, TensorFlow and PyTorch programs to static libraries and shared objects
License: Apache-2.0
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Software Development :: Compilers
Requires-Python: >=3.9
Requires-Dist: numpy>=1.22
Provides-Extra: jax
Requires-Dist: jax; extra == "jax"
Provides-Extra: ml_dtypes
Requires-Dist: ml_dtypes; extra == "ml_dtypes"
Description-Content-Type: text/markdown

{description}"""

WHEEL = """Wheel-Version: 1.0
Generator: kiln
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """[console_scripts]
kiln = kiln.__main__:main
"""


def newest_glibc(executable: str) -> int:
    """The minor version of the newest glibc 2 that the executable asks for."""
    symbols = subprocess.run(["readelf", "-VW", executable], capture_output=True, text=True, check=True).stdout
    return max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", symbols))


def contents(kiln: str, version: str) -> dict[str, tuple[int, bytes]]:
    """The files of the wheel with their modes, but for RECORD."""
    files = {f"kiln/{p.name}": (0o644, p.read_bytes()) for p in (*PACKAGE.glob("*.py"), PACKAGE / "py.typed")}
    for header in HEADERS:
        files[f"kiln/include/kiln/{header}"] = (0o644, pathlib.Path("runtime_min", header).read_bytes())
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "--strip-all", "-o", stripped.name, kiln], check=True)
        tag = f"py3-none-manylinux_2_{newest_glibc(stripped.name)}_x86_64"
        files["kiln/bin/kiln"] = (0o755, pathlib.Path(stripped.name).read_bytes())
    info = f"{DISTRIBUTION}-{version}.dist-info"
    description = pathlib.Path("docs/python.md").read_text()
    files[f"{info}/METADATA"] = (0o644, METADATA.format(version=version, description=description).encode())
    files[f"{info}/WHEEL"] = (0o644, WHEEL.format(tag=tag).encode())
    files[f"{info}/entry_points.txt"] = (0o644, ENTRY_POINTS.encode())
    files[f"{info}/licenses/LICENSE"] = (0o644, pathlib.Path("LICENSE").read_bytes())
    # Of what is linked into the executable, as the packages state them that it was linked from.
    for library in LINKED:
        data = pathlib.Path("/usr/share/doc", library, "copyright").read_bytes()
        files[f"{info}/licenses/third_party/{library}.txt"] = (0o644, data)
    files[f"{info}/licenses/NOTICE"] = (0o644, pathlib.Path("NOTICE").read_bytes())
    return files


def record(files: dict[str, tuple[int, bytes]], path: str) -> bytes:
    """The wheel's list of its files, at `path`."""
    lines = []
    for name, (_, data) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{path},,\n"]).encode()


def main() -> None:
    kiln, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    said = subprocess.run([kiln, "--version"], capture_output=True, text=True, check=True).stdout
    version = said.split()[1]
    stated = re.search(r'__version__ = "(.*)"', (PACKAGE / "_version.py").read_text()).group(1)
    if version != stated:
        sys.exit(f"wheel.py: the executable is {version}, and {PACKAGE}/_version.py says {stated}")
    files = contents(kiln, version)
    info = f"{DISTRIBUTION}-{version}.dist-info"
    files[f"{info}/RECORD"] = (0o644, record(files, f"{info}/RECORD"))
    tag = re.search(r"Tag: (\S+)", files[f"{info}/WHEEL"][1].decode()).group(1)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{DISTRIBUTION}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as wheel:
        for name, (mode, data) in sorted(files.items()):
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
