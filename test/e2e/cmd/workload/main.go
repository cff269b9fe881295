// Command workload is all that is in the containers of the tests. It prints the
// devices that it was given, one a line and in order, then a line "ready", and
// waits for the end. With the argument "once" it ends at once, as a job does; with
// "pause" it prints nothing.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// variablePrefix is driver.VariablePrefix. The image holds nothing but this
// binary, so it links nothing of the driver.
const variablePrefix = "DRA_DEVICE_"

func main() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	// Before the line that tests wait for: the first process of a container
	// that handles no SIGTERM is not ended by it.
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)

	if mode != "pause" {
		for _, device := range devices(os.Environ()) {
			fmt.Println("device", device)
		}
		fmt.Println("ready")
	}
	if mode != "once" {
		<-ended
	}
}

// devices returns the values of the variables that name devices, in order.
func devices(environment []string) []string {
	var found []string
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, variablePrefix) {
			found = append(found, value)
		}
	}
	slices.Sort(found)
	return found
}
