package main

import (
	"fmt"
	"strconv"
	"strings"
)

// gates is the flag value "Name=true,Other=false". The components themselves
// refuse names that they do not know.
type gates struct {
	target *map[string]bool
}

// String returns nothing: the default is no gate.
func (g gates) String() string { return "" }

// Type is what the help shows as the flag's value.
func (g gates) Type() string { return "gates" }

// Set adds the gates of one flag to those of earlier ones.
func (g gates) Set(text string) error {
	if *g.target == nil {
		*g.target = map[string]bool{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(pair, "=")
		on, err := strconv.ParseBool(value)
		if !found || name == "" || err != nil {
			return fmt.Errorf("%q is not of the form Name=true or Name=false", pair)
		}
		(*g.target)[name] = on
	}
	return nil
}
