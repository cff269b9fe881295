//go:build linux

package node

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// bridge is the device that connects the nodes.
const bridge = "nodes"

// Bridge makes the bridge, with the address of the machine that the nodes reach
// through it. It is called once, before the first node is started.
func Bridge(address string) error {
	return ip(nil,
		"link add "+bridge+" type bridge",
		"addr add "+address+"/24 dev "+bridge,
		"link set "+bridge+" up",
	)
}

// port is the name of a node's device at the bridge.
func port(node string) string { return "port-" + node }

// connect gives the node whose first process has the given ID a network device on
// the bridge. It disappears some time after the node; see disconnect.
func connect(pid int, name, address, gateway string) error {
	outer := port(name)
	err := ip(nil,
		"link add "+outer+" type veth peer name eth0 netns "+strconv.Itoa(pid),
		"link set "+outer+" master "+bridge+" up",
	)
	if err != nil {
		return err
	}
	return ip(func(cmd *exec.Cmd) error { return start(pid, cmd) },
		"link set lo up",
		"addr add "+address+"/24 dev eth0",
		"link set eth0 up",
		"route add default via "+gateway,
	)
}

// disconnect removes the device of a node that is off, unless it is gone already.
func disconnect(name string) { _ = ip(nil, "link del "+port(name)) }

// ip calls the command of that name, once for each line. A start function that is
// not nil starts it.
func ip(start func(*exec.Cmd) error, lines ...string) error {
	for _, line := range lines {
		var output strings.Builder
		cmd := exec.Command("ip", strings.Fields(line)...)
		cmd.Stdout, cmd.Stderr = &output, &output
		var err error
		if start == nil {
			err = cmd.Start()
		} else {
			err = start(cmd)
		}
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, strings.TrimSpace(output.String()))
		}
	}
	return nil
}
