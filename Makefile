# The CI (.ci/run) does the same as "make lint test".
# The same flags as "go run", so that both use what the other has compiled.
build:
	go build -o parley ./cmd/gateway

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

# Archives for people without Go, in dist/, with their checksums. The program tells the version of the tag of this
# commit, or else the commit; changes that are not committed show.
PLATFORMS = linux-amd64 linux-arm64 linux-armv7 darwin-amd64 darwin-arm64
VERSION = $(shell git describe --tags --always --dirty)

release:
	rm -rf dist
	@set -e; for platform in $(PLATFORMS); do \
		name=parley-$(VERSION)-$$platform; os=$${platform%-*}; arch=$${platform#*-}; arm=; \
		case $$arch in armv*) arm=$${arch#armv}; arch=arm;; esac; \
		echo "$$name"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch GOARM=$$arm \
			go build -trimpath -ldflags=-s -buildvcs=true -o "dist/$$name/parley" ./cmd/gateway; \
		cp -r README.md CHANGELOG.md LICENSE docs "dist/$$name/"; \
		tar -C dist --owner=0 --group=0 -czf "dist/$$name.tar.gz" "$$name"; \
		rm -r "dist/$$name"; \
	done
	cd dist && sha256sum *.tar.gz >checksums.txt

# The moving picture of the README, recorded from the real program on Linux. It needs Chromium, and fonts with emoji
# (Debian: chromium fonts-dejavu-core fonts-noto-color-emoji).
film:
	PARLEY_FILM=$(CURDIR)/docs/parley.gif go test -count=1 -run TestFilm ./cmd/gateway

.PHONY: build test torture lint run image release film
