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
	compiled *lru.Cache
}

// NewCompiler returns a compiler for the language that the given feature gates
// allow.
func NewCompiler(features cel.Features) *Compiler {
	return &Compiler{features: features, compiled: lru.New(maxExpressions)}
}

// Compile returns the compiled expression. An expression that does not compile
// is returned as well: Expression.Err then says why. The result is shared, and
// so are the verdicts that it remembers.
func (c *Compiler) Compile(text string) *Expression {
	if known, ok := c.compiled.Get(text); ok {
		return known.(*Expression)
	}
	expression := c.compile(text)
	c.compiled.Add(text, expression)
	return expression
}

func (c *Compiler) compile(text string) *Expression {
	// The cost was estimated when the object was admitted; at run time the
	// limit on the actual cost is what protects the scheduler.
	program := cel.GetCompiler(c.features).CompileCELExpression(text, cel.Options{DisableCostEstimation: true})
	if program.Error != nil {
		return &Expression{text: text, err: errors.New(program.Error.Detail)}
	}
	tree, issues := program.Environment.Compile(text)
	if issues != nil && issues.Err() != nil {
		return &Expression{text: text, err: fmt.Errorf("compile for analysis: %w", issues.Err())}
	}
	expression := &Expression{text: text, program: program, reads: analyse(tree.NativeRep().Expr())}
	expression.memo.init()
	return expression
}
