package demo

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Verdict says about one pod whether it is as promised.
type Verdict struct {
	Pod      string
	Problems []string // what was promised and what is there; none if all is well
}

// Check compares what is there with what is promised. Every promised pod gets a
// verdict, and so does a pod that nobody promised.
func Check(e *Expectation, pods []Pod, devices Devices) []Verdict {
	var verdicts []Verdict
	promised := map[string]bool{}
	for i := range e.Placements {
		promise := &e.Placements[i]
		found := 0
		for _, pod := range pods {
			if promised[pod.Name] || !promise.concerns(pod.Name) {
				continue
			}
			promised[pod.Name] = true
			found++
			verdict := Verdict{Pod: pod.Name, Problems: promise.check(pod, pods, devices)}
			if found > promise.pods() {
				verdict.Problems = append(verdict.Problems,
					fmt.Sprintf("promised are %d pods %s, this is number %d", promise.pods(), promise.Pod, found))
			}
			verdicts = append(verdicts, verdict)
		}
		promise.addDifferences(pods, devices, verdicts[len(verdicts)-found:])
		for missing := promise.pods() - found; missing > 0; missing-- {
			verdicts = append(verdicts, Verdict{Pod: promise.Pod, Problems: []string{promise.missing(found)}})
		}
	}
	for _, pod := range pods {
		if !promised[pod.Name] {
			verdicts = append(verdicts, Verdict{Pod: pod.Name, Problems: []string{"expect.yaml does not mention this pod"}})
		}
	}
	addUnpromisedSharing(e, pods, verdicts)
	return verdicts
}

// addDifferences adds a problem to each of the promise's pods with a device whose
// value of the attribute SameForAll is not that of the first device.
func (p *Promise) addDifferences(pods []Pod, devices Devices, verdicts []Verdict) {
	if p.SameForAll == "" {
		return
	}
	var first []string
	for i := range verdicts {
		pod := slices.IndexFunc(pods, func(pod Pod) bool { return pod.Name == verdicts[i].Pod })
		for _, held := range pods[pod].Devices {
			value := devices.attribute(held.ID, p.SameForAll)
			if first == nil {
				first = value
			}
			if len(value) == 0 || !slices.Equal(value, first) {
				verdicts[i].Problems = append(verdicts[i].Problems, fmt.Sprintf("%s has %s %q, another device of pods %s has %q",
					held.ID, p.SameForAll, strings.Join(value, ", "), p.Pod, strings.Join(first, ", ")))
			}
		}
	}
}

func (p *Promise) missing(found int) string {
	if !p.Prefix {
		return "it is promised, but does not exist"
	}
	return fmt.Sprintf("promised are %d pods whose names begin like this, there are %d", p.pods(), found)
}

func (p *Promise) concerns(pod string) bool {
	return pod == p.Pod || p.Prefix && strings.HasPrefix(pod, p.Pod)
}

func (p *Promise) check(pod Pod, pods []Pod, devices Devices) []string {
	if p.Pending {
		return p.checkPending(pod)
	}
	if pod.Node == "" {
		return []string{fmt.Sprintf("promised is to run on %s, but it waits: %s", strings.Join(p.Nodes, " or "), pod.Condition)}
	}
	var problems []string
	if !pod.Running {
		problems = append(problems, "it is bound, but does not run")
	}
	if !slices.ContainsFunc(p.Nodes, func(pattern string) bool { return matches(pattern, pod.Node) }) {
		problems = append(problems, fmt.Sprintf("promised is node %s, it runs on %s", strings.Join(p.Nodes, " or "), pod.Node))
	}
	for _, claim := range pod.Unreserved {
		problems = append(problems, fmt.Sprintf("claim %s is not reserved for it", claim))
	}
	problems = append(problems, p.checkDevices(pod, devices)...)
	return append(problems, p.checkShared(pod, pods)...)
}

// matches needs a valid pattern; decodeExpectation has seen to that.
func matches(pattern, node string) bool {
	ok, err := path.Match(pattern, node)
	return err == nil && ok
}

func (p *Promise) checkPending(pod Pod) []string {
	if pod.Node != "" {
		return []string{fmt.Sprintf("promised is that it waits, but it runs on %s", pod.Node)}
	}
	var problems []string
	for _, text := range p.ConditionContains {
		if !strings.Contains(pod.Condition, text) {
			problems = append(problems, fmt.Sprintf("promised is a condition with %q, it is: %s", text, pod.Condition))
		}
	}
	return problems
}

func (p *Promise) checkShared(pod Pod, pods []Pod) []string {
	var problems []string
	for _, name := range p.SharesDevicesWith {
		i := slices.IndexFunc(pods, func(other Pod) bool { return other.Name == name })
		if i < 0 {
			problems = append(problems, fmt.Sprintf("promised is to share devices with %s, which does not exist", name))
			continue
		}
		for _, held := range pod.Devices {
			if !uses(pods[i], held.ID) {
				problems = append(problems, fmt.Sprintf("promised is to share devices with %s, which does not have %s", name, held.ID))
			}
		}
	}
	return problems
}

func uses(pod Pod, id DeviceID) bool {
	return slices.ContainsFunc(pod.Devices, func(held Held) bool { return held.ID == id })
}

// addUnpromisedSharing adds a problem to each pod that has a device of another
// pod although neither of the two is promised to share.
func addUnpromisedSharing(e *Expectation, pods []Pod, verdicts []Verdict) {
	shares := func(a, b string) bool {
		return slices.ContainsFunc(e.Placements, func(p Promise) bool {
			return p.concerns(a) && slices.Contains(p.SharesDevicesWith, b)
		})
	}
	for _, pod := range pods {
		for _, other := range pods {
			if pod.Name == other.Name || shares(pod.Name, other.Name) || shares(other.Name, pod.Name) {
				continue
			}
			for _, held := range pod.Devices {
				if uses(other, held.ID) {
					addProblem(verdicts, pod.Name, fmt.Sprintf("has %s, which pod %s has too", held.ID, other.Name))
				}
			}
		}
	}
}

func addProblem(verdicts []Verdict, pod, problem string) {
	for i := range verdicts {
		if verdicts[i].Pod == pod {
			verdicts[i].Problems = append(verdicts[i].Problems, problem)
		}
	}
}

func listHeld(devices []Held) string {
	if len(devices) == 0 {
		return "none"
	}
	texts := make([]string, len(devices))
	for i, held := range devices {
		texts[i] = held.ID.String()
	}
	return strings.Join(texts, ", ")
}
