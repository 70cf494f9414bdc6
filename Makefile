# The CI (.ci/run) does the same as "make lint test".
build:
	go build -trimpath -o parley ./cmd/gateway

test:
	go test -race -shuffle=on ./...

# Long runs of the tests that kill the program and break what it depends on.
torture:
	PARLEY_TORTURE=1 go test -run Torture -timeout 60m ./...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -d .; exit 1; }
	go vet ./... early.parley
	go mod tidy -diff
	go tool -modfile=lint/go.mod golangci-lint run
	cd tools/sandbox/early && go tool -modfile=../../../lint/go.mod golangci-lint run

run:
	go run ./cmd/gateway

image:
	docker build -t parley .

.PHONY: build test torture lint run image
