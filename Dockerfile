FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY tools/sandbox/early/go.mod tools/sandbox/early/
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /out/parley ./cmd/gateway && mkdir -m 700 /out/data

# Certificates and a user that is not root, and nothing else.
FROM gcr.io/distroless/static-debian12:nonroot
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
