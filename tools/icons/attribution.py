"""The table of sets, authors and licences that ships with the icons."""

HEAD = """# Whose icons these are

`icons.jsonl.bz2` and `base.jsonl.bz2` hold icons of the sets below, taken from the npm package `@iconify/json` {version}
(<https://iconify.design>). They were **selected, not changed**: the drawings are as the package has them, each wrapped
in an `<svg>` element with its own view box. Each set stays under the licence of its authors; the licence of Labelsieve's code does not apply
to it. Names and logos of companies may be trademarks of their owners; they are here because their names are ambiguous words, and mean no
endorsement.

| set | icons used | authors | licence |
|---|---|---|---|
"""

TEXTS = """
## Licence texts

Sets under MIT, with the copyright of the authors named above:

> Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
> "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
> distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
> the following conditions:
>
> The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.
>
> THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
> MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
> ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
> THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

Sets under ISC, with the copyright of the authors named above:

> Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the
> above copyright notice and this permission notice appear in all copies.
>
> THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
> MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY
> DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION,
> ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.

Apache-2.0: the text is in `LICENSE-APACHE` at the root of this repository. CC-BY-4.0: <https://creativecommons.org/licenses/by/4.0/legalcode>.
CC-BY-3.0: <https://creativecommons.org/licenses/by/3.0/legalcode>. CC0-1.0: <https://creativecommons.org/publicdomain/zero/1.0/legalcode>.
"""


def attribution(version, sets, used):
    """The page, for the number of icons used of each set."""
    lines = []
    for prefix in sorted(used):
        entry = sets[prefix]
        author, licence = entry["author"], entry["license"]
        lines.append(
            f"| {entry['name']} (`{prefix}`) | {used[prefix]} | {link(author['name'], author.get('url'))} "
            f"| {link(licence['spdx'], licence.get('url'))} |\n"
        )
    total = f"\n{sum(used.values())} icons of {len(used)} sets.\n"
    return HEAD.format(version=version) + "".join(lines) + total + TEXTS


def link(text, url):
    text = text.replace("|", "\\|")
    return f"[{text}]({url})" if url else text
