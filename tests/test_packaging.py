"""The wheel: what is in it, what it says of itself, and that it runs where only it is installed.

Building and installing need no network: the build backend is installed beside the tests, and the new environment
borrows the libraries of this one.
"""

import email
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import hopscope

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def about(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(f"{_info()}/METADATA"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    source = ROOT / "src"
    ours = {
        str(path.relative_to(source))
        for path in (source / "hopscope").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "hopscope/py.typed" in ours
    assert {name for name in held if not name.startswith(f"{_info()}/")} == ours
    assert f"{_info()}/licenses/LICENSE" in held


def test_the_wheel_says_what_it_is(about: Message) -> None:
    assert about["Name"] == "hopscope"
    assert about["Version"] == hopscope.__version__
    assert about["License-Expression"] == "MIT"
    assert about["Requires-Python"] == ">=3.11"


def test_nothing_that_only_tests_need_is_required(about: Message) -> None:
    required = [line for line in about.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert [line for line in required if line.startswith(("pytest", "ruff", "mypy", "hypothesis", "build"))] == []


def test_the_installed_wheel_runs(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path, symlinks=True)
    python = tmp_path / "bin" / "python"
    _call(
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        str(wheel),
    )
    packages = Path(_call(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")

    assert _call(str(python), "-I", "-c", "import hopscope; print(hopscope.__file__)").startswith(str(tmp_path))
    for command in ([str(tmp_path / "bin" / "hopscope")], [str(python), "-I", "-m", "hopscope"]):
        assert hopscope.__version__ in _call(*command, "--version")


def _info() -> str:
    return f"hopscope-{hopscope.__version__}.dist-info"


def _call(*command: str) -> str:
    """Run a command outside the repository and give what it prints; show everything when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=120)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
