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
stamp := $(foreach package,k8s.io/component-base/version k8s.io/client-go/pkg/version, \
	-X $(package).gitVersion=$(KUBERNETES_VERSION) \
	-X $(package).gitMajor=$(word 1,$(kubernetes)) \
	-X $(package).gitMinor=$(word 2,$(kubernetes)) \
	-X $(package).gitTreeState=clean) \
	-X sigs.k8s.io/kwok/pkg/consts.Version=$(shell sed -n 's|^\tsigs.k8s.io/kwok v|v|p' go.mod)
LDFLAGS := -s -w $(stamp) -X main.version=$(VERSION)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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

.PHONY: demo
demo: build ## run the examples on a simulated cluster; KEEP=1 leaves it running
	@bin/sandbox demo --scheduler bin/device-scheduler --config config/device-scheduler.yaml --examples manifests/examples $(if $(KEEP),--keep)

# The order is that of what fails fastest.
.PHONY: test
test: check unit race conformance integration ## run all tests
	@echo "test: everything passed"

.PHONY: check
check: ## gofmt and go vet
	@echo "checking the format"
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	@echo "running go vet (the first time it compiles Kubernetes: about 15 minutes on 2 cores)"
	@go vet ./...

UNIT := ./config/... ./cmd/device-scheduler/... ./cmd/sandbox ./cmd/sandbox/hardware/... ./cmd/sandbox/demo/... ./plugins/... ./test/builders/... ./test/allocationcheck/... ./test/randomcluster/... ./test/perf/decision ./test/layering/... ./test/e2e/driver/... ./test/e2e/image/...

.PHONY: unit
unit: ## unit, property, differential, golden and layering tests
	@echo "running the tests that need no control plane"
	@go test $(UNIT)

# Where goroutines meet. The race detector needs a C compiler; without one the
# same tests have run without it in the target unit.
RACE := ./plugins/deviceallocation/recency ./plugins/deviceallocation/inventory ./plugins/deviceallocation/ledger \
	./plugins/deviceallocation/selector ./plugins/deviceallocation/verdict ./plugins/deviceallocation/claimwriter ./plugins/deviceallocation

.PHONY: race
race: ## the tests of concurrent packages with the race detector
	@if command -v "$${CC:-gcc}" >/dev/null; then \
		echo "running concurrent packages with the race detector (the first time it compiles kube-scheduler once more: about 8 minutes)"; \
		CGO_ENABLED=1 go test -race $(RACE); \
	else echo "no C compiler: the race detector is left out"; fi

.PHONY: conformance
conformance: ## kube-scheduler's own allocator cases against our allocator
	@test/conformance/run

.PHONY: integration
integration: build ## tests on a real control plane, with the manifests and configuration as shipped
	@echo "running the integration tests"
	@SANDBOX_BINARY=$(CURDIR)/bin/sandbox DEVICE_SCHEDULER_BINARY=$(CURDIR)/bin/device-scheduler \
		go test -timeout 20m ./cmd/sandbox/controlplane/... ./test/integration/... ./test/perf

.PHONY: e2e
e2e: ## two real nodes: kubelet, containerd and a DRA driver run what was decided; needs root
	@test/e2e/run

# containerd has a module of its own: it asks for other versions of much that
# Kubernetes needs as well.
CONTAINERD := github.com/containerd/containerd/v2/cmd
.PHONY: e2e-binaries
e2e-binaries:
	@mkdir -p bin/e2e
	@echo "building containerd, containerd-shim-runc-v2 and ctr (with an empty build cache about 4 minutes)"
	@cd test/e2e/runtime && go build -tags 'no_btrfs no_devmapper no_zfs no_tracing' -ldflags '-s -w' \
		-o $(CURDIR)/bin/e2e/ $(CONTAINERD)/containerd $(CONTAINERD)/containerd-shim-runc-v2 $(CONTAINERD)/ctr
	@echo "building kubelet (with an empty build cache about 1 minute more than the sandbox)"
	@go build -ldflags '$(LDFLAGS)' -o bin/e2e/kubelet k8s.io/kubernetes/cmd/kubelet
	@echo "building the DRA driver, the workload and the tests"
	@go build -ldflags '$(LDFLAGS)' -o bin/e2e/ ./test/e2e/cmd/dra-driver ./test/e2e/cmd/workload
	@go test -c -o bin/e2e/e2e.test ./test/e2e

.PHONY: differential
differential: ## 20,000 random clusters against kube-scheduler's allocator
	@PROPERTY_CASES=20000 go test -timeout 60m -v -run TestCheckAcceptsStock ./test/allocationcheck
	@DIFFERENTIAL_CASES=20000 go test -timeout 60m -v -run TestSolveAgainstStock ./plugins/deviceallocation/allocator

.PHONY: bench
bench: ## benchmarks of the core
	@go test -run '^$$' -bench . -benchmem ./plugins/deviceallocation/...

# WORKLOADS="a b" runs these alone, ROUNDS=n each n times with each plugin,
# PLUGINS=DeviceAllocation one plugin alone, PROFILES=folder keeps profiles,
# OUTPUT=json writes JSON. test/perf/README.md says what the table means.
perf_flags = $(if $(WORKLOADS),-perf.workloads '$(WORKLOADS)') $(if $(ROUNDS),-perf.rounds $(ROUNDS)) \
	$(if $(PLUGINS),-perf.plugins '$(PLUGINS)') $(if $(PROFILES),-perf.profiles '$(PROFILES)') $(if $(OUTPUT),-o $(OUTPUT))

.PHONY: bin/perf.test
bin/perf.test:
	@go test -c -o $@ ./test/perf

.PHONY: perf
perf: bin/perf.test ## kube-scheduler with and without the plugin, short workloads; 15 minutes on 2 cores
	@bin/perf.test -perf.set short $(perf_flags)

.PHONY: perf-full
perf-full: bin/perf.test ## the same with all workloads in full size; hours
	@bin/perf.test -perf.set full $(perf_flags)

.PHONY: perf-plugin
perf-plugin: ## the plugin alone: decisions per second with both plugins, and memory
	@go test -timeout 60m -count 1 -v -run 'TestRatios|TestMemory' -benchtime $(or $(BENCHTIME),128x) ./test/perf/decision -goals

.PHONY: clean
clean: ## remove what was built
	@rm -rf bin
