"""Read `@iconify/json`: the sets whose licence lets us ship them, and their icons.

Only the standard library is needed. An icon is named `set:name`, as Iconify does.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

VERSION = "2.2.535"
"""The version of the npm package that the labels were made for."""

LICENCES = {"MIT", "Apache-2.0", "ISC", "CC0-1.0", "CC-BY-3.0", "CC-BY-4.0"}

MAX_BODY = 6000
"""Longer drawings (3D-like emoji, detailed arms and logos) would take most of the space."""

UNSUPPORTED = ("<animate", "<set ", "<text", "<image", "<style", "<foreignObject", "<script")
"""What a still picture without fonts cannot show."""


@dataclass(frozen=True)
class Icon:
    """One drawing: the inside of an `<svg>` and the part of the plane it covers."""

    id: str
    body: str
    view_box: tuple

    @property
    def set(self):
        return self.id.split(":", 1)[0]

    @property
    def name(self):
        return self.id.split(":", 1)[1]

    @property
    def title(self):
        """The text that is matched: the name its author gave it, without the set's."""
        return self.name.replace("-", " ")


def read_sets(package):
    """The sets under a licence of the list: prefix → entry of `collections.json`."""
    version = json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]
    if version != VERSION:
        raise SystemExit(f"error: `{package}` is @iconify/json {version}, expected {VERSION}")
    sets = json.loads((package / "collections.json").read_text(encoding="utf-8"))
    return {p: sets[p] for p in sorted(sets) if sets[p]["license"].get("spdx") in LICENCES}


def read_icons(package, sets):
    """Every usable icon of the sets, in order of its id.

    Of identical drawings only the first is kept; aliases (the same drawing, turned or under another name) are left out.
    """
    seen, icons = set(), []
    for prefix in sorted(sets):
        data = json.loads((package / "json" / f"{prefix}.json").read_text(encoding="utf-8"))
        for name, icon in sorted(data["icons"].items()):
            body = icon["body"]
            box = tuple(icon.get(k, data.get(k, d)) for k, d in
                        (("left", 0), ("top", 0), ("width", 16), ("height", 16)))
            key = (body, box)
            if icon.get("hidden") or len(body) > MAX_BODY or key in seen:
                continue
            if any(tag in body for tag in UNSUPPORTED):
                continue
            seen.add(key)
            icons.append(Icon(f"{prefix}:{name}", body, box))
    return icons


# Words of a name that say how an icon is drawn, not what it shows.
STYLE_WORDS = set(
    """regular filled bold outline outlined thin rounded fill sharp duotone solid tone light line dark flat remix background alt
    broken linear duo twotone stroke baseline round gradient mono monochrome plain original inverse color icon glyph freehand print
    expressive badged alerted variant medium small large big mini skin circle square box rectangle wordmark logo brand block
    s r l f o lt rtl ltr one two three 24px 16px 20px""".split()
)

# Sets that are styles or versions of one design.
SAME_DESIGN = [
    (r"fa[67]?-.*|la", "font-awesome"),
    (r"ic|material-symbols.*", "google"),
    (r"bx|bxs|bxl|boxicons", "boxicons"),
    (r"ui[lmst]", "unicons"),
    (r"ion|famicons", "ionic"),
    (r"fluent|fluent-color|fluent-mdl2", "fluent"),
    (r"feather|lucide.*|mynaui", "feather"),
    (r"(icon-park|heroicons|fluent-emoji|emojione|noto|devicon|cryptocurrency|token|pepicons|glyphs|thesvg).*", r"\1"),
    (r"(streamline.*)-color", r"\1"),
]


def family(icon_id):
    """The design an icon belongs to: set and name without words and numbers of style.

    All icons of a family go to one part of the sample, and few of them are taken.
    """
    prefix, name = icon_id.split(":", 1)
    for pattern, design in SAME_DESIGN:
        if match := re.fullmatch(pattern, prefix):
            prefix = match.expand(design)
            break
    words = [w for w in name.split("-") if w not in STYLE_WORDS and not w.isdigit()]
    return f"{prefix}:{'-'.join(words) or name}"


def digest(*parts):
    """A number that orders things at random, and the same way for everybody."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def svg(icon):
    """The icon as a whole SVG document; `currentColor` is left to the renderer."""
    left, top, width, height = icon.view_box
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{left} {top} {width} {height}">{icon.body}</svg>'
    )


def package_folder(argument):
    """The folder of the unpacked npm package."""
    folder = Path(argument)
    if not (folder / "collections.json").is_file():
        raise SystemExit(
            f"error: no collections.json in `{folder}`\n"
            f"hint: npm pack @iconify/json@{VERSION} && tar xzf iconify-json-{VERSION}.tgz, then give the folder `package`"
        )
    return folder
