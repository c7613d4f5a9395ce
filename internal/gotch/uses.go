package gotch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"sort"
	"strings"
)

// handleUses is how many statements of each hand-written file use the handle of a tensor or scalar, and threadErrors
// how many functions read an error that libtorch left on the thread.
var (
	handleUses = map[string]int{"ts/tensor.go": 26, "ts/patch.go": 16, "ts/jit.go": 3, "ts/image.go": 2,
		"ts/optimizer.go": 3, "ts/scalar.go": 3}
	handles = map[string]bool{"ctensor": true, "cscalar": true}
)

// adaptUses makes the hand-written functions refuse a tensor or scalar that was freed, hold it during the call, name
// themselves and their operands in errors, and stay on one thread from the call to the reading of its error.
func adaptUses(dst string) error {
	for file, want := range handleUses {
		err := rewrite(dst, file, func(s string) (string, error) {
			changed, met, err := guardUses(s)
			if err != nil {
				return "", fmt.Errorf("adapting %s %s: file %s: %w", Module, Version, file, err)
			}
			if met != want {
				return "", edit{file: file, what: "uses of handles", anchor: ".ctensor"}.changed(met, want)
			}
			return changed, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// insertion is text that goes before an offset of the source, and replaces as many bytes as cut.
type insertion struct {
	at, cut int
	text    string
}

// guardUses changes one file and returns how many statements it guarded.
func guardUses(src string) (string, int, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", src, parser.SkipObjectResolution)
	if err != nil {
		return "", 0, err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	text := func(n ast.Node) string { return src[at(n.Pos()):at(n.End())] }
	var ins []insertion
	met := 0
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		op := fn.Name.Name
		var operands []string
		guarded := map[string]bool{}
		statements(fn.Body.List, func(st ast.Stmt) {
			guard := ""
			for _, sel := range handlesIn(st) {
				x := text(sel.X)
				if guarded[x] {
					continue
				}
				failed := x + ".deadIn(" + fmt.Sprintf("%q", op) + ")"
				guard += "if !" + x + ".begin() { " + failure(fn, text, failed) + " }\n\tdefer " + x + ".end()\n\t"
				if isTensorParam(fn, text, x) {
					operands = append(operands, x)
					guarded[x] = true
				}
			}
			if len(handlesIn(st)) > 0 {
				met++
			}
			if guard != "" {
				ins = append(ins, insertion{at: at(st.Pos()), text: guard})
			}
		})
		ins = append(ins, named(fn, at, text, operands)...)
	}
	return insert(src, ins), met, nil
}

// named makes the errors of a function name it and its operands. One that reads an error which libtorch left on the
// thread stays there meanwhile.
func named(fn *ast.FuncDecl, at func(token.Pos) int, text func(ast.Node) string, operands []string) (ins []insertion) {
	op, shown := fmt.Sprintf("(%q", fn.Name.Name), ""
	if len(operands) > 0 {
		shown = ", " + strings.Join(operands, ", ")
	}
	locked := false
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		instead := insertion{at: at(call.Pos()), cut: len(text(call))}
		switch text(call.Fun) {
		case "TorchErr":
			locked = true
			instead.text = "threadError" + op + shown + ")"
		case "slotError":
			instead.text = "slotError" + op + ", slot[:]" + shown + ")"
		default:
			return true
		}
		ins = append(ins, instead)
		return true
	})
	if locked {
		ins = append(ins, insertion{at: at(fn.Body.Lbrace) + 1, text: "\n\tdefer lockThread()()"})
	}
	return ins
}

// statements calls f for every statement that holds no others.
func statements(list []ast.Stmt, f func(ast.Stmt)) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.BlockStmt:
			statements(st.List, f)
		case *ast.IfStmt:
			statements(st.Body.List, f)
			if st.Else != nil {
				statements([]ast.Stmt{st.Else}, f)
			}
		case *ast.ForStmt:
			statements(st.Body.List, f)
		case *ast.RangeStmt:
			statements(st.Body.List, f)
		case *ast.SwitchStmt:
			statements(st.Body.List, f)
		case *ast.TypeSwitchStmt:
			statements(st.Body.List, f)
		case *ast.CaseClause:
			statements(st.Body, f)
		default:
			f(st)
		}
	}
}

// handlesIn finds the handles that a statement uses.
func handlesIn(st ast.Stmt) []*ast.SelectorExpr {
	var found []*ast.SelectorExpr
	ast.Inspect(st, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && handles[sel.Sel.Name] {
			found = append(found, sel)
		}
		return true
	})
	return found
}

// failure is the statement that ends fn with an error: it is returned, or a panic where fn returns none.
func failure(fn *ast.FuncDecl, text func(ast.Node) string, err string) string {
	results := fn.Type.Results
	if results == nil || text(results.List[len(results.List)-1].Type) != "error" {
		return "KelvinFatal(" + err + ")"
	}
	declare, values := "", ""
	for i, r := range results.List[:len(results.List)-1] {
		for _, name := range r.Names {
			values += name.Name + ", "
		}
		if len(r.Names) == 0 {
			declare += fmt.Sprintf("var zero%d %s; ", i, text(r.Type))
			values += fmt.Sprintf("zero%d, ", i)
		}
	}
	return declare + "return " + values + err
}

// isTensorParam says whether name is the receiver or a parameter of fn of type *Tensor.
func isTensorParam(fn *ast.FuncDecl, text func(ast.Node) string, name string) bool {
	fields := append([]*ast.Field{}, fn.Type.Params.List...)
	if fn.Recv != nil {
		fields = append(fields, fn.Recv.List...)
	}
	for _, f := range fields {
		for _, n := range f.Names {
			if n.Name == name && text(f.Type) == "*Tensor" {
				return true
			}
		}
	}
	return false
}

// insert makes all insertions, which refer to the offsets of s.
func insert(s string, ins []insertion) string {
	sort.SliceStable(ins, func(i, j int) bool { return ins[i].at < ins[j].at })
	var b strings.Builder
	from := 0
	for _, in := range ins {
		b.WriteString(s[from:in.at])
		b.WriteString(in.text)
		from = in.at + in.cut
	}
	b.WriteString(s[from:])
	return b.String()
}
