package config

// FeatureGates are the feature gates of kube-scheduler that are on in device-scheduler although they are off by default
// in this version of Kubernetes. --feature-gates turns them off again.
//
// SchedulerPreQueueingHints (alpha in 1.37) lets a plugin name the pods that an event is about. Without it the scheduler
// asks every waiting pod about every event of every claim: with thousands of pods in a burst that costs more than all
// decisions. Of the plugins in a profile that this project ships, only DeviceAllocation asks for events of claims, so
// nobody else is kept from an event.
var FeatureGates = []string{"SchedulerPreQueueingHints"}
