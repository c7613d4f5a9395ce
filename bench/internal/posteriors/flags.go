package posteriors

import (
	"flag"
	"os"
)

// Flags are -path, of a checkout of posteriordb, and -models, the posteriors that a benchmark runs.
type Flags struct{ Path, Models string }

// Add adds the flags to those of a benchmark.
func (c *Flags) Add(to *flag.FlagSet) {
	to.StringVar(&c.Path, "path", os.Getenv("POSTERIORDB"),
		"a checkout of posteriordb; by default the environment variable POSTERIORDB")
	to.StringVar(&c.Models, "models", "", "posteriors to run, separated by commas; by default all")
}

// Open finds the database and the posteriors.
func (c Flags) Open() (Database, []Entry, error) {
	chosen, err := Choose(c.Models)
	if err != nil {
		return Database{}, nil, err
	}
	db, err := Open(c.Path)
	return db, chosen, err
}
