# preflight and nothing else: docker run --rm -v "$PWD:/work:ro" IMAGE check run.yaml
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY preflight ./preflight
COPY rules ./rules
COPY schemas ./schemas
RUN python -m venv /opt/preflight && /opt/preflight/bin/pip install --no-cache-dir '.[layouts,reports]'

FROM python:3.13-slim
COPY --from=build /opt/preflight /opt/preflight
RUN useradd --create-home --uid 10001 preflight
USER 10001
WORKDIR /work
ENTRYPOINT ["/opt/preflight/bin/preflight"]
CMD ["--help"]
