# vfsd in a container.
#
#   docker build -t vfsd .
#   docker run --rm --device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined \
#       --mount type=bind,source=/mnt/vfsd,target=/mnt/vfsd,bind-propagation=rshared \
#       --env VFSD_STORE=redis://redis.example:6379/0 \
#       vfsd mount --foreground /mnt/vfsd/run-42 --scope run-42 --allow-other
#
# Mounting FUSE in a container needs --device, --cap-add and, if AppArmor is active, --security-opt. With
# bind-propagation=rshared the host and other containers see the mount at /mnt/vfsd/run-42; without it only this
# container does. /mnt/vfsd has to exist on the host, on a shared mount (with systemd, every mount is shared).
# Credentials belong in the environment of the run, never in the image.

ARG DEBIAN=bookworm-slim

# --- builder: compiles pyfuse3, installs vfsd into a virtual environment ------------------------------------------
FROM debian:${DEBIAN} AS builder

# hadolint ignore=DL3008  # versions are those of the Debian release
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        gcc libc6-dev libfuse3-dev pkg-config python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

RUN python3 -m venv /opt/vfsd
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY docs/vfsd.1 docs/
COPY vfsd vfsd
RUN /opt/vfsd/bin/python -m pip install --no-cache-dir . \
    && /opt/vfsd/bin/python -m pip uninstall -y setuptools pip

# --- runtime: Python, libfuse, the virtual environment; no compiler, no headers, no pip --------------------------
FROM debian:${DEBIAN}

LABEL org.opencontainers.image.title="vfsd" \
      org.opencontainers.image.description="Ordinary files for agent runs: kept in memory, mounted through FUSE, written through to a store" \
      org.opencontainers.image.licenses="MIT"

# fuse3 brings libfuse and fusermount3.
# hadolint ignore=DL3008  # versions are those of the Debian release
RUN apt-get update \
    && apt-get install -y --no-install-recommends fuse3 python3 \
    && rm -rf /var/lib/apt/lists/*

# A virtual environment cannot be moved, so the path is the same as in the builder.
COPY --from=builder /opt/vfsd /opt/vfsd
RUN ln -s /opt/vfsd/bin/vfsd /usr/local/bin/vfsd && vfsd --version

# The container runs as root, because mount(2) requires it. `docker stop` sends SIGTERM: vfsd unmounts and releases the
# scope.
ENTRYPOINT ["vfsd"]
CMD ["--help"]
