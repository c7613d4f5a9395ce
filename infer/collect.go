package infer

import "fmt"

// draws says whether there is a draw after a number of updates.
func (c RunConfig) draws(updates int64) bool {
	if updates <= c.BurnIn {
		return false
	}
	if c.Cycles == nil {
		return (updates-c.BurnIn)%c.Thin == 0
	}
	return c.Cycles.Ends(updates) && (c.Cycles.Done(updates)-c.Cycles.Done(c.BurnIn))%c.Thin == 0
}

// checkCycles checks the cycles, and that a draw is taken at the end of at least one.
func (c RunConfig) checkCycles() error {
	if c.Cycles == nil {
		return nil
	}
	if err := c.Cycles.check(); err != nil {
		return err
	}
	if n := c.Cycles.Done(c.Steps) - c.Cycles.Done(c.BurnIn); n < c.Thin && !c.NoDraws {
		return &FieldError{Type: "infer.RunConfig", Field: "Cycles", Value: fmt.Sprintf("%d updates long, from update %d", c.Cycles.Length, c.Cycles.From),
			Allowed: fmt.Sprintf("at least Thin = %d of them must end after BurnIn = %d and within the %d Steps; %d do (NoDraws asks for none)",
				c.Thin, c.BurnIn, c.Steps, max(n, 0))}
	}
	return nil
}
