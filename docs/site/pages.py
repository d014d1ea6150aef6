"""Adds to the site the pages at the root of the repository, a page for each rule, the schemas and the address."""

from __future__ import annotations

import json
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

import preflight

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PAGES = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?!https?:|#)(?!docs/)[^)]*\)")
"""A link to a file that is no page: its text stays."""
WIDE = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
STOP = "[\u3001-\u3011\uff01-\uff5e]"
LINE_END = re.compile(f"(?<={WIDE})\n *(?={WIDE})|(?<={STOP})\n *(?=[\\w`\\[])(?!\\d+\\. )")
"""The end of a line between two Chinese characters, or after a stop, which a browser shows as a blank."""


SECTION = re.compile(r"^## (\S+)\n\n`([^`\n]+)` · .*?(?=^## \S+\n\n`|\Z)", re.MULTILINE | re.DOTALL)
"""The section of a rule on the page of its topic: its heading and the id below it."""


def address() -> tuple[str | None, str | None]:
    """The address of the repository and of the site, by [project.urls]; GitHub publishes a site for each repository."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    home = urls.get("Repository")
    github = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+)", home or "")
    return home, urls.get("Documentation") or (f"https://{github[1].lower()}.github.io/{github[2]}" if github else None)


def on_config(config: Any) -> Any:
    home, site = address()
    config.repo_url = home
    version = os.environ.get("SITE_VERSION", preflight.__version__)
    config.site_url = f"{site}/{version}/" if site else None
    return config


def rule_pages(topic: str, text: str) -> Iterator[tuple[str, str]]:
    """The page of each rule that shares the page of its topic."""
    title = text.partition("\n")[0].removeprefix("# ")
    for found in SECTION.finditer(text):
        page = f"rules/{found[2]}.md"
        way = posixpath.relpath(topic, posixpath.dirname(page))
        body = found[0].removeprefix(f"## {found[1]}\n").replace("](#", f"]({way}#")
        yield page, f"# {found[1]}\n{body.rstrip()}\n\nOne of the checks of [{title}]({way}#{found[1]}).\n"


def schemas() -> Iterator[tuple[str, str]]:
    """Every schema, with its address in the site as its `$id`."""
    from preflight import schemas as files
    from preflight.dialects import generated_json_schemas

    for name in generated_json_schemas.names():
        yield name, json.dumps(generated_json_schemas.schema(*generated_json_schemas.names()[name]), indent=2)
    for name in files.names():
        if '"$schema"' in (text := files.text(f"{name}.json"))[:4000]:
            yield name, text


def on_files(files: Any, config: Any) -> Any:
    taken = {file.src_uri for file in files}
    for topic in [file for file in files if file.src_uri.startswith("rules/")]:
        for page, text in rule_pages(topic.src_uri, Path(topic.abs_src_path).read_text(encoding="utf-8")):
            if page not in taken:
                files.append(File.generated(config, page, content=text))
    for name, text in schemas():
        if config.site_url:
            text = text.replace(f'"$id": "preflight:{name}"', f'"$id": "{config.site_url}schemas/{name}.json"', 1)
        files.append(File.generated(config, f"schemas/{name}.json", content=text))
    for name, page in PAGES.items():
        text = OUTSIDE.sub(_page_or_text, (ROOT / name).read_text(encoding="utf-8")).replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    if page.file.src_uri.startswith("rules/") and len(SECTION.findall(markdown)) > 1:
        page.meta["search"] = {"exclude": True}  # the pages of its rules are found
    for name, page in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({page}")
    markdown = re.sub(r"\[([^\]]+)\]\((?:\.\./)?ci/[^)]*\)", r"\1", markdown)
    tree = rf"[\1]({config.repo_url}/blob/main/editors/\2)" if config.repo_url else r"\1"
    markdown = re.sub(r"\[([^\]]+)\]\((?:\.\./)+editors/([^)]*)\)", tree, markdown)
    return LINE_END.sub("", markdown)


def on_post_page(output: str, **_: Any) -> str:
    """The page with a name for the search dialog."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def _page_or_text(link: re.Match[str]) -> str:
    target = link.group(0).rpartition("(")[2].rstrip(")")
    name, _, anchor = target.partition("#")
    if name not in PAGES:
        return link.group(1)
    return f"[{link.group(1)}]({PAGES[name]}{'#' * bool(anchor)}{anchor})"
