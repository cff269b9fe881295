package integration

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/device-scheduler/device-scheduler/test/builders"
)

// Each pod gets a claim of its own from a template; it goes away with the pod.
func TestClaimsFromATemplate(t *testing.T) {
	e := env(t)
	e.Nodes("a")
	e.Create(class(e, "gpu").Obj(), gpus(e, "a", 2).Obj(),
		builders.Pod("early").ClaimTemplate("gpu", "template", "").Obj())
	e.Create(&resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "template"},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: builders.Claim("", builders.Request("r", e.In("gpu"))).Obj().Spec},
	})
	e.Runs("early", "a")
	early := e.ClaimOf("early", "gpu")
	e.Holds(early, e.Allocation("a", e.Device("r", "a", "gpu-0")), "early")

	e.Create(builders.Pod("late").ClaimTemplate("gpu", "template", "").Obj(),
		builders.Pod("third").ClaimTemplate("gpu", "template", "").Obj())
	e.DeletePod("early")
	e.Runs("late", "a")
	e.Runs("third", "a")
	late, third := e.ClaimOf("late", "gpu"), e.ClaimOf("third", "gpu")
	e.OnlyClaims(late, third)
	e.DeletePod("late")
	e.DeletePod("third")
	e.OnlyClaims()
}
