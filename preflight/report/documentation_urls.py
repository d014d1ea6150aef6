"""The URLs of the documentation, the schemas and the project, from the metadata of the installed distribution, and the
pages installed with it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import preflight

PACKAGE = Path(preflight.__file__).parent


def home() -> str | None:
    """The project URL from the installed distribution's metadata, or None."""
    return _url("repository", "source", "homepage")


def site() -> str | None:
    """The documentation URL of this version, without a trailing slash; None if there is no site."""
    place = _url("documentation")
    return f"{place.rstrip('/')}/{preflight.__version__}" if place else None


def page_url(page: str, section: str) -> str | None:
    """The URL of a section of a page of docs/; None if the distribution has no project URL.

    On the documentation site a page is a folder; in the repository it is a file.
    """
    if (place := site()) is not None:
        folder = page.removesuffix("README.md").removesuffix(".md").rstrip("/")
        return f"{place}/{folder}/#{section}"
    place = home()
    return f"{place.rstrip('/').removesuffix('.git')}/blob/main/docs/{page}#{section}" if place else None


def schema_url(name: str) -> str | None:
    """The URL of a schema on the site or below the project; None if the distribution has no project URL."""
    place = site() or home()
    return f"{place.rstrip('/').removesuffix('.git')}/schemas/{name}.json" if place else None


def installed_page(page: str) -> Path | None:
    """The installed file of a page of docs/rules, from a wheel or a checkout; None if missing."""
    folders = (PACKAGE / "pages", PACKAGE.parent / "docs" / "rules")
    return next((path for folder in folders if (path := folder / page).is_file()), None)


def _url(*labels: str) -> str | None:
    try:
        urls = metadata("preflight-llm").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    found = {label.strip().lower(): url.strip() for label, _, url in (line.partition(",") for line in urls)}
    return next((found[label] for label in labels if label in found), None)
