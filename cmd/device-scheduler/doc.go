// Command device-scheduler is kube-scheduler with the plugin DeviceAllocation.
//
// It takes the flags of kube-scheduler and a KubeSchedulerConfiguration that
// enables the plugin; two such files are in the folder config. Configurations
// under which devices would be handed out twice are refused at start.
package main
