FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY tools/sandbox/early/go.mod tools/sandbox/early/
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /out/parley ./cmd/gateway && mkdir -m 700 /out/data /out/data/workspace

# Certificates, what the agent's programs are to have, a sandbox for them (the kernel has another), and a user
# that is not root. Without python3 and git it would be 100 MB smaller, and the agent could run little.
FROM debian:12-slim
RUN apt-get update -q && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		bubblewrap ca-certificates git python3 && \
	rm -rf /var/lib/apt/lists/* && \
	useradd --system --uid 65532 --home-dir /data nonroot
COPY --from=build /out/parley /parley
COPY --from=build --chown=nonroot:nonroot /out/data /data
USER nonroot
# The config, the store and the workspace.
VOLUME /data
# SIGTERM lets turns finish, which may take 20 s: docker stop --time 30.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["/parley", "--data", "/data", "health"]
ENTRYPOINT ["/parley", "--data", "/data"]
CMD ["run"]
