package selector

import (
	"errors"
	"fmt"

	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/lru"
)

// maxExpressions bounds the compiled expressions that a Compiler keeps. A
// cluster has a handful of classes and a few hundred claim templates; a tenant
// who writes a new expression into every claim evicts only old entries.
const maxExpressions = 1024

// Compiler compiles expressions and keeps the most recently used ones, failed
// ones included. It is safe for concurrent use.
type Compiler struct {
	features cel.Features
	// compiled and derivations are by the text of the expression. One text can
	// be a selector here and a derived attribute there.
	compiled    *lru.Cache
	derivations *lru.Cache
}

// NewCompiler returns a compiler for the language that the given feature gates
// allow.
func NewCompiler(features cel.Features) *Compiler {
	return &Compiler{features: features, compiled: lru.New(maxExpressions), derivations: lru.New(maxExpressions)}
}

// Compile returns the compiled selector. An expression that does not compile
// is returned as well: Expression.Err then says why. The result is shared, and
// so are the verdicts that it remembers.
func (c *Compiler) Compile(text string) *Expression {
	if known, ok := c.compiled.Get(text); ok {
		return known.(*Expression)
	}
	expression := &Expression{source: c.compile(text, false)}
	expression.memo.init()
	c.compiled.Add(text, expression)
	return expression
}

// CompileDerivation returns the compiled expression of a derived attribute.
// One that does not compile is returned as well: Derivation.Err then says why.
// The result is shared, and so are the values that it remembers.
func (c *Compiler) CompileDerivation(text string) *Derivation {
	if known, ok := c.derivations.Get(text); ok {
		return known.(*Derivation)
	}
	derivation := &Derivation{source: c.compile(text, true)}
	derivation.memo.init()
	c.derivations.Add(text, derivation)
	return derivation
}

func (c *Compiler) compile(text string, derived bool) source {
	// The cost was estimated when the object was admitted; at run time the
	// limit on the actual cost is what protects the scheduler.
	program := cel.GetCompiler(c.features).CompileCELExpression(text, cel.Options{DisableCostEstimation: true, DerivedAttribute: derived})
	if program.Error != nil {
		return source{text: text, err: errors.New(program.Error.Detail)}
	}
	tree, issues := program.Environment.Compile(text)
	if issues != nil && issues.Err() != nil {
		return source{text: text, err: fmt.Errorf("compile for analysis: %w", issues.Err())}
	}
	return source{text: text, program: program, reads: analyse(tree.NativeRep().Expr())}
}
