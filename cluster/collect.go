package cluster

import (
	"context"
	"errors"

	"github.com/kelvin-ppl/kelvin/draws"
)

// collect puts the draws together, as a local run does.
func (r *run) collect() (*draws.Draws, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all *draws.Draws
	var failed []error
	types := map[string]bool{}
	for task := range r.job.tasks() {
		res, ok := r.results[task]
		from, _ := r.job.part(task)
		if !ok {
			continue
		}
		if res.Object == "" {
			failed = append(failed, &TaskError{Task: task, First: r.job.FirstChain + uint64(from), Tries: res.Tries,
				Text: res.Text})
			continue
		}
		types[res.CPU] = true
		body, err := r.desk.get(ctx, res.Object)
		if err != nil {
			return nil, err
		}
		p, err := unpack(body)
		if err != nil {
			return nil, err
		}
		if len(p.Sites) == 0 {
			continue // no draws were asked for
		}
		if all == nil {
			if all, err = draws.New(p.Sites, p.Stats, r.job.Chains); err != nil {
				return nil, err
			}
		}
		if err := p.into(all, from); err != nil {
			return nil, err
		}
	}
	if all == nil || all.Total() == 0 {
		return nil, errors.Join(failed...)
	}
	if len(types) > 1 {
		all.SetAttr("cluster", "workers with different processors: equal to a local run in law, not bit for bit")
	}
	var named *draws.Draws
	if err := safely(func() (err error) {
		named, err = r.program.Draws(all, r.program.Batch())
		return err
	}); err != nil {
		return all, errors.Join(append(failed, err)...)
	}
	if named != all {
		for k, v := range all.Attrs() {
			named.SetAttr(k, v)
		}
		for _, n := range all.Notes() {
			named.AddNote(n)
		}
	}
	return named, errors.Join(failed...)
}
