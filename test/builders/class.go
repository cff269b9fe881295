package builders

import (
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClassBuilder builds a DeviceClass.
type ClassBuilder struct{ class resourceapi.DeviceClass }

// Class starts a class that matches all devices.
func Class(name string) *ClassBuilder {
	return &ClassBuilder{class: resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Select adds CEL expressions.
func (b *ClassBuilder) Select(expressions ...string) *ClassBuilder {
	b.class.Spec.Selectors = append(b.class.Spec.Selectors, selectors(expressions)...)
	return b
}

// Config adds a configuration for a driver.
func (b *ClassBuilder) Config(driver, parameters string) *ClassBuilder {
	b.class.Spec.Config = append(b.class.Spec.Config,
		resourceapi.DeviceClassConfiguration{DeviceConfiguration: Config(driver, parameters)})
	return b
}

// Obj returns the class. Each call returns a new copy.
func (b *ClassBuilder) Obj() *resourceapi.DeviceClass { return b.class.DeepCopy() }

// Config returns a configuration with opaque parameters, given as JSON.
func Config(driver, parameters string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver:     driver,
		Parameters: runtime.RawExtension{Raw: []byte(parameters)},
	}}
}

func selectors(expressions []string) []resourceapi.DeviceSelector {
	var result []resourceapi.DeviceSelector
	for _, expression := range expressions {
		result = append(result, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	}
	return result
}
