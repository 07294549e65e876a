# Winnow as a team's server. Built and run without root and without network at start; docs/server.md says what to set.
FROM python:3.11-slim-bookworm

RUN useradd --create-home --uid 10001 winnow
WORKDIR /app
COPY requirements.lock requirements-server.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock \
 && pip install --no-cache-dir --require-hashes -r requirements-server.lock
COPY app.py asgi.py LICENSE NOTICE pyproject.toml ./
COPY .streamlit ./.streamlit
COPY rag_core ./rag_core
COPY pages ./pages
COPY eval_sets ./eval_sets

RUN mkdir /data && chown winnow /data
USER winnow
ENV WINNOW_WORKSPACE=/data PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/api/health', timeout=4)"]
# Refuses to start on this address until a log-in is set up: WINNOW_USER_HEADER or .streamlit/secrets.toml.
CMD ["streamlit", "run", "asgi.py", "--server.address", "0.0.0.0", "--server.port", "8501", "--server.headless", "true"]
