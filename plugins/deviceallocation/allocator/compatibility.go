package allocator

import "slices"

// compatibility says which devices may draw on a counter set next to those that
// do (KEP-5963): they must have a compatibility group in common with all of
// them, and devices without groups go with their like only. The zero value is
// that of a counter set that nobody draws on. It is immutable.
type compatibility struct {
	used   bool
	groups []string
}

func (c compatibility) admits(groups []string) bool {
	if !c.used {
		return true
	}
	if len(groups) == 0 || len(c.groups) == 0 {
		return len(groups) == len(c.groups)
	}
	return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(c.groups, g) })
}

// with returns the state after a device with these groups has joined. If it
// should not have been there, because slices have changed meanwhile, the state
// is that of the others, or one that admits nobody.
func (c compatibility) with(groups []string) compatibility {
	if !c.used {
		return compatibility{used: true, groups: groups}
	}
	if len(groups) == 0 || len(c.groups) == 0 {
		return c
	}
	common := make([]string, 0, len(groups))
	for _, g := range c.groups {
		if slices.Contains(groups, g) {
			common = append(common, g)
		}
	}
	if len(common) == 0 {
		common = append(common, noGroup)
	}
	return compatibility{used: true, groups: common}
}

// noGroup is the name of no group: the API does not allow it.
const noGroup = ""
