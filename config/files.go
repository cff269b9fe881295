package config

import _ "embed"

// SecondScheduler is the KubeSchedulerConfiguration for a scheduler beside the cluster's own: it takes the pods with
// schedulerName device-scheduler. Do not change the bytes; copy them first.
//
//go:embed device-scheduler.yaml
var SecondScheduler []byte

// ReplaceDefault is the KubeSchedulerConfiguration for a scheduler instead of the cluster's own: it takes the pods
// with schedulerName default-scheduler. Do not change the bytes; copy them first.
//
//go:embed replace-default.yaml
var ReplaceDefault []byte
