package formula

// memory is what a design has learned from the training data; with the formula it is all that there is to know.
type memory struct {
	// Levels of each factor by its expression. A column without an entry is of numbers.
	Levels map[string][]string `json:"levels"`
	// Numbers that an expression has learned, by what it is: the mean and the standard deviation of scale(x), ...
	Numbers map[string][]float64 `json:"numbers"`
	// Outcome has the levels of an outcome that is a factor; nil otherwise.
	Outcome []string `json:"outcome,omitempty"`
}

func newMemory() *memory {
	return &memory{Levels: map[string][]string{}, Numbers: map[string][]float64{}}
}
