"""The addresses in the metadata of the installed distribution, and the pages installed with it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import preflight

PACKAGE = Path(preflight.__file__).parent


def home() -> str | None:
    """The address of the project in the installed distribution; None if it has none."""
    return _url("repository", "source", "homepage")


def site() -> str | None:
    """The address of the documentation of this version, without a slash at its end; None if there is no site."""
    place = _url("documentation")
    return f"{place.rstrip('/')}/{preflight.__version__}" if place else None


def page_url(page: str, section: str) -> str | None:
    """A section of a page of docs/ on the web; None if the distribution has no address.

    The documentation is a site, whose pages are folders; a repository shows the files themselves.
    """
    if (place := site()) is not None:
        folder = page.removesuffix("README.md").removesuffix(".md").rstrip("/")
        return f"{place}/{folder}/#{section}"
    place = home()
    return f"{place.rstrip('/').removesuffix('.git')}/blob/main/docs/{page}#{section}" if place else None


def schema_url(name: str) -> str | None:
    """The address of a schema in the site, otherwise below the project; None if the distribution has no address."""
    place = site() or home()
    return f"{place.rstrip('/').removesuffix('.git')}/schemas/{name}.json" if place else None


def installed_page(page: str) -> Path | None:
    """The file of a page of docs/rules, of a wheel or of a checkout; None if it is not installed."""
    folders = (PACKAGE / "pages", PACKAGE.parent / "docs" / "rules")
    return next((path for folder in folders if (path := folder / page).is_file()), None)


def _url(*labels: str) -> str | None:
    try:
        urls = metadata("preflight-llm").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    found = {label.strip().lower(): url.strip() for label, _, url in (line.partition(",") for line in urls)}
    return next((found[label] for label in labels if label in found), None)
