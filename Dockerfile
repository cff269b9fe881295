# device-scheduler as an image that holds one static binary and nothing else:
#
#   docker build --build-arg VERSION=v0.1.0 -t device-scheduler:v0.1.0 .

FROM golang:1.26 AS build
WORKDIR /src

# The modules first: they change less often than the source, and their layer is reused until they do.
COPY go.mod go.sum ./
RUN go mod download

COPY . .

# The version of device-scheduler itself.
ARG VERSION=development
# The version of Kubernetes that the binary reports. It must be the one that go.mod asks for: feature gates and
# /metrics go by it. The build stops if the two differ.
ARG KUBERNETES_VERSION=v1.37.2

# CGO is off because the final stage has no C library to link against at run time.
RUN set -eu; \
    required="$(go list -m -f '{{.Version}}' k8s.io/kubernetes)"; \
    if [ "$required" != "$KUBERNETES_VERSION" ]; then \
        echo "go.mod requires k8s.io/kubernetes $required: build with --build-arg KUBERNETES_VERSION=$required" >&2; \
        exit 1; \
    fi; \
    majorminor="${KUBERNETES_VERSION#v}"; \
    majorminor="${majorminor%.*}"; \
    CGO_ENABLED=0 GOOS=linux go build -trimpath -o /device-scheduler -ldflags "-s -w \
        -X main.version=$VERSION \
        -X k8s.io/component-base/version.gitVersion=$KUBERNETES_VERSION \
        -X k8s.io/component-base/version.gitMajor=${majorminor%%.*} \
        -X k8s.io/component-base/version.gitMinor=${majorminor##*.}" \
        ./cmd/device-scheduler

# No shell, no package manager, no certificates: in the cluster the API server's authority is mounted into the pod
# with the service account's token.
FROM scratch
COPY --from=build /device-scheduler /device-scheduler
# Numeric, so that the kubelet can check runAsNonRoot without a user database.
USER 65532:65532
ENTRYPOINT ["/device-scheduler"]
