# Everything that this project can do. `make help` lists the targets.

SHELL := /bin/bash

VERSION            ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.0.0-unknown)
KUBERNETES_VERSION := $(shell sed -n 's|^\tk8s.io/kubernetes v|v|p' go.mod)

# One setting for all builds, so that they share the build cache. Components of
# Kubernetes that are built from the module say v0.0.0 unless they are told.
export CGO_ENABLED := 0
empty :=
space := $(empty) $(empty)
kubernetes := $(subst .,$(space),$(patsubst v%,%,$(KUBERNETES_VERSION)))
stamp := -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION) \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(kubernetes)) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(kubernetes))
LDFLAGS := -s -w $(stamp) -X main.version=$(VERSION)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: bin/device-scheduler bin/sandbox ## build the scheduler and the sandbox into bin/

.PHONY: bin/device-scheduler
bin/device-scheduler:
	@echo "building $@ (with an empty build cache this takes about 6 minutes on 2 cores)"
	@go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/device-scheduler

.PHONY: bin/sandbox
bin/sandbox:
	@echo "building $@: etcd, kube-apiserver, kube-controller-manager, kubectl, kwok (with an empty build cache about 8 minutes)"
	@go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/sandbox
