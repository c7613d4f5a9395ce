package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// count reads how far each attempt came, from the files that workers keep of them, and adds up what was made twice: the
// updates between the last one of an attempt and the one from which the next attempt of that task went on.
func (r *report) count(dir string) error {
	files, err := os.ReadDir(dir) // in the order of the names: by task, and then by attempt
	if err != nil {
		return err
	}
	var task string
	var last int
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		var resumed, step int
		if _, err := fmt.Sscan(string(text), &resumed, &step); err != nil {
			continue // it died before its first update
		}
		parts := strings.SplitN(f.Name(), "-", 4) // run, task, attempt, worker
		if len(parts) != 4 {
			return fmt.Errorf("%s is not a worker's file", f.Name())
		}
		if parts[1] == task {
			again := max(last-resumed, 0)
			r.Again++
			r.Repeated += again
			r.Most = max(r.Most, again)
		}
		task, last = parts[1], step
	}
	return nil
}
