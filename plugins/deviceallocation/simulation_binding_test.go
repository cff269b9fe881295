package deviceallocation

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/device-scheduler/device-scheduler/plugins/deviceallocation/device"
	"github.com/device-scheduler/device-scheduler/test/builders"
)

// startPreBind runs PreBind until it has ended or waits for devices, and tells
// whether it has ended.
func (f *flight) startPreBind() (*fwk.Status, bool) {
	for len(f.recorder.Events) > 0 {
		<-f.recorder.Events
	}
	f.preBound = make(chan *fwk.Status, 1)
	go func() { f.preBound <- f.preBind(f.node) }()
	select {
	case status := <-f.preBound:
		return status, true
	case <-f.recorder.Events:
		return nil, false
	}
}

// endPreBind waits for the end of a PreBind that waits. Before that the driver
// reports that the devices are ready or have failed, or nothing at all; then the
// time passes.
func (s *simulation) endPreBind(f *flight) (*fwk.Status, string) {
	s.settle()
	select {
	case status := <-f.preBound:
		return status, "the end of the wait"
	default:
	}
	report := []string{attached + "=True", attached + "=True", attached + "=True", broken + "=True", ""}[s.random.IntN(5)]
	if report != "" {
		s.report(f, report)
	}
	return <-f.preBound, fmt.Sprintf("the driver's report %q", report)
}

// report writes a condition into the claims of a pod that wait for it.
func (s *simulation) report(f *flight, text string) {
	claims := s.client.ResourceV1().ResourceClaims(builders.Namespace)
	for _, claim := range s.allClaims() {
		waits := false
		for _, c := range claim.Status.ReservedFor {
			waits = waits || c.UID == f.pod.UID
		}
		unready := unreadyDevices(claim)
		if !waits || len(unready) == 0 {
			continue
		}
		for _, d := range unready {
			setReport(claim, d.id, condition(text))
		}
		_, err := claims.UpdateStatus(s.T.Context(), claim, metav1.UpdateOptions{})
		s.must(err)
	}
}

// checkReady checks that the devices of a pod that is about to be bound are
// ready, in whatever state the scheduler believes them to be.
func (s *simulation) checkReady(f *flight) {
	s.Helper()
	for _, claim := range s.allClaims() {
		for _, c := range claim.Status.ReservedFor {
			if unready := unreadyDevices(claim); c.UID == f.pod.UID && len(unready) > 0 {
				s.failf("%s is bound, although device %s of claim %s is not ready", f.pod.Name, unready[0].id, stableName(claim.Name))
			}
		}
	}
}

// setReport puts a condition into the status of a device of a claim.
func setReport(claim *resourceapi.ResourceClaim, id device.ID, c metav1.Condition) {
	for i := range claim.Status.Devices {
		if status := &claim.Status.Devices[i]; device.NewID(status.Driver, status.Pool, status.Device) == id {
			status.Conditions = append(status.Conditions, c)
			return
		}
	}
	claim.Status.Devices = append(claim.Status.Devices, resourceapi.AllocatedDeviceStatus{
		Driver: id.Driver.Value(), Pool: id.Pool.Value(), Device: id.Device.Value(), Conditions: []metav1.Condition{c},
	})
}
