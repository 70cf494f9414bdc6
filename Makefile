# Five words. The CI (.ci/run) does the same as "make lint test".
build:
	go build -trimpath -o parley ./cmd/gateway

test:
	go test -race -shuffle=on ./...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -d .; exit 1; }
	go vet ./...
	go mod tidy -diff
	go tool -modfile=lint/go.mod golangci-lint run

run:
	go run ./cmd/gateway

image:
	docker build -t parley .

.PHONY: build test lint run image
