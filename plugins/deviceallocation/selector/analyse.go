package selector

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// depth says how far into the variable "device" an expression has reached.
type depth int

const (
	elsewhere   depth = iota // not part of the device
	wholeDevice              // device
	wholeMap                 // device.attributes
	oneDomain                // device.attributes["gpu.example.com"]
	leaf                     // device.attributes["gpu.example.com"].model
)

// path is the part of the device that a subexpression denotes.
type path struct {
	depth    depth
	capacity bool // below device.capacity instead of device.attributes
	domain   string
}

// analysis interprets an expression abstractly: each subexpression denotes a
// part of the device or something else. A part that is consumed in any other
// way than by selecting from it is read as a whole. This errs on the side of
// reading too much, which costs evaluations and never correctness.
type analysis struct {
	reads reads
	bound map[string][]path // variables introduced by cel.bind
}

func analyse(root ast.Expr) reads {
	a := analysis{bound: make(map[string][]path)}
	a.consume(root)
	a.reads.finish()
	return a.reads
}

// consume visits an expression whose value is used as a whole.
func (a *analysis) consume(e ast.Expr) { a.consumed(a.visit(e)) }

func (a *analysis) consumed(p path) {
	switch p.depth {
	case wholeDevice:
		a.reads.driver, a.reads.shareable = true, true
		a.reads.allAttributes, a.reads.allCapacities = true, true
	case wholeMap:
		if p.capacity {
			a.reads.allCapacities = true
		} else {
			a.reads.allAttributes = true
		}
	case oneDomain:
		if p.capacity {
			a.reads.capacityDomains = append(a.reads.capacityDomains, p.domain)
		} else {
			a.reads.attributeDomains = append(a.reads.attributeDomains, p.domain)
		}
	}
}

func (a *analysis) visit(e ast.Expr) path {
	switch e.Kind() {
	case ast.IdentKind:
		return a.identifier(e.AsIdent())
	case ast.SelectKind:
		selection := e.AsSelect()
		return a.step(selection.Operand(), selection.FieldName())
	case ast.CallKind:
		return a.call(e.AsCall())
	case ast.ComprehensionKind:
		return a.comprehension(e.AsComprehension())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			a.consume(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			a.consume(entry.AsMapEntry().Key())
			a.consume(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			a.consume(field.AsStructField().Value())
		}
	}
	return path{}
}

func (a *analysis) identifier(identifier string) path {
	if stack := a.bound[identifier]; len(stack) > 0 {
		return stack[len(stack)-1]
	}
	if identifier == "device" {
		return path{depth: wholeDevice}
	}
	return path{}
}

// step selects a field or a constant key. A presence test sees no more than an
// ordinary selection.
func (a *analysis) step(operand ast.Expr, key string) path {
	p := a.visit(operand)
	switch p.depth {
	case wholeDevice:
		switch key {
		case "attributes":
			return path{depth: wholeMap}
		case "capacity":
			return path{depth: wholeMap, capacity: true}
		case "driver":
			a.reads.driver = true
		default:
			a.reads.shareable = true
		}
		return path{depth: leaf}
	case wholeMap:
		return path{depth: oneDomain, capacity: p.capacity, domain: key}
	case oneDomain:
		read := name{domain: p.domain, id: key}
		if p.capacity {
			a.reads.capacities = append(a.reads.capacities, read)
		} else {
			a.reads.attributes = append(a.reads.attributes, read)
		}
		return path{depth: leaf}
	default:
		return p
	}
}

func (a *analysis) call(call ast.CallExpr) path {
	args := call.Args()
	switch call.FunctionName() {
	case operators.Index:
		if key, ok := constant(args[1]); ok {
			return a.step(args[0], key)
		}
	case operators.OptIndex, operators.OptSelect:
		if key, ok := constant(args[1]); ok {
			// What is missing is absent here, and may be an empty map elsewhere:
			// rather than tell the two apart, read all of it.
			a.consumed(a.step(args[0], key))
			return path{}
		}
	case operators.In:
		// "id" in device.attributes["domain"] asks for the presence of one entry.
		// Unknown domains are empty maps, so a domain's presence is not that simple.
		if key, ok := constant(args[0]); ok && a.peek(args[1]).depth == oneDomain {
			a.step(args[1], key)
			return path{}
		}
	}
	if call.IsMemberFunction() {
		a.consume(call.Target())
	}
	for _, arg := range args {
		a.consume(arg)
	}
	return path{}
}

// peek tells what an expression denotes without recording reads: selections
// below a domain record, so they are visited on a copy.
func (a *analysis) peek(e ast.Expr) path {
	probe := analysis{bound: a.bound}
	return probe.visit(e)
}

func constant(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// comprehension handles cel.bind, which binds its accumulator once and never
// iterates, and reads everything that a real iteration touches as a whole.
func (a *analysis) comprehension(c ast.ComprehensionExpr) path {
	if r := c.IterRange(); r.Kind() == ast.ListKind && len(r.AsList().Elements()) == 0 {
		variable := c.AccuVar()
		init := a.visit(c.AccuInit())
		if init.depth == wholeDevice || init.depth == wholeMap {
			// Selecting an unknown domain from a variable fails, while it gives an
			// empty map when selected from the device.
			a.consumed(init)
			init = path{}
		}
		a.bound[variable] = append(a.bound[variable], init)
		result := a.visit(c.Result())
		a.bound[variable] = a.bound[variable][:len(a.bound[variable])-1]
		return result
	}
	a.consume(c.IterRange())
	a.consume(c.AccuInit())
	// The iteration's own variables shadow outer ones and are no part of the
	// device any more: what they hold has been read as a whole above.
	own := []string{c.IterVar(), c.IterVar2(), c.AccuVar()}
	for _, variable := range own {
		a.bound[variable] = append(a.bound[variable], path{})
	}
	a.consume(c.LoopCondition())
	a.consume(c.LoopStep())
	a.consume(c.Result())
	for _, variable := range own {
		a.bound[variable] = a.bound[variable][:len(a.bound[variable])-1]
	}
	return path{}
}
