"""Packs a release: the program, its manual pages and completions, README and licences, under the name that the
metadata for `cargo binstall` promises.

    cargo build --release --locked -p labelsieve-cli
    python3 tools/archive.py x86_64-unknown-linux-gnu DIST
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FORMATS = {"tgz": (".tar.gz", "gztar"), "zip": (".zip", "zip")}
SHELLS = {"bash": "labelsieve.bash", "elvish": "labelsieve.elv", "fish": "labelsieve.fish", "powershell": "_labelsieve.ps1", "zsh": "_labelsieve"}


def main(target: str, dist: Path) -> None:
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    metadata = json.loads(subprocess.check_output(command, cwd=ROOT))
    package = next(package for package in metadata["packages"] if package["name"] == "labelsieve-cli")
    binstall = package["metadata"]["binstall"]
    binstall |= binstall.pop("overrides").get(target, {})
    ending, packer = FORMATS[binstall["pkg-fmt"]]
    extension = ".exe" if "windows" in target else ""
    words = {"repo": package["repository"], "version": package["version"], "target": target, "bin": "labelsieve", "binary-ext": extension}
    archive = fill(binstall["pkg-url"], words).rsplit("/", 1)[1]
    folder, program = fill(binstall["bin-dir"], words).split("/")
    assert archive.endswith(ending), f"{archive} should end with {ending}"

    with tempfile.TemporaryDirectory() as parent:
        contents = Path(parent, folder)
        contents.mkdir()
        built = Path(metadata["target_directory"], "release", program)
        shutil.copy(built, contents)
        for name in ("README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"):
            shutil.copy(ROOT / name, contents)
        subprocess.check_call([built, "man", "-q", "-o", contents / "man"])
        (contents / "completions").mkdir()
        for shell, name in SHELLS.items():
            (contents / "completions" / name).write_bytes(subprocess.check_output([built, "completions", shell]))
        dist.mkdir(parents=True, exist_ok=True)
        print(shutil.make_archive(str(dist / archive.removesuffix(ending)), packer, parent, folder))


def fill(template: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        template = template.replace(f"{{ {word} }}", value)
    return template


main(sys.argv[1], Path(sys.argv[2]))
