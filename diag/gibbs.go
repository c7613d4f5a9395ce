package diag

import "math"

// ScoreLog is [Score] of log probabilities, [case][class], such as those of [Predictive.LogMean]: LogLoss is finite also
// where probabilities underflow. [ErrSize] and [ErrRange] are the errors.
func ScoreLog(logp [][]float64, label []int) (Scores, error) {
	if err := checkLabels("score", logp, label); err != nil {
		return Scores{}, err
	}
	if err := checkLogProbabilities("score", logp); err != nil {
		return Scores{}, err
	}
	return scoreLog(logp, label), nil
}

func scoreLog(logp [][]float64, label []int) Scores {
	var s Scores
	n := float64(len(logp))
	for i, row := range logp {
		s.LogLoss -= row[label[i]] / n
		for k, v := range row {
			p := math.Exp(v)
			if k == label[i] {
				p = math.Expm1(v) // p - 1
			}
			s.Brier += p * p / n
		}
		if class, _ := top(row); class == label[i] {
			s.Accuracy += 1 / n
		}
	}
	return s
}

// checkLabels checks the shape of predictions, [case][class], and that labels are 0 to classes-1.
func checkLabels(doing string, rows [][]float64, label []int) error {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return failf(ErrSize, "%s: at least one case with at least one class is needed", doing)
	}
	if len(label) != len(rows) {
		return failf(ErrSize, "%s: %d labels, want %d, one per case", doing, len(label), len(rows))
	}
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			return failf(ErrSize, "%s: case %d has %d classes, want %d as case 0", doing, i, len(row), len(rows[0]))
		}
		if label[i] < 0 || label[i] >= len(row) {
			return failf(ErrRange, "%s: label %d is %d, want 0 to %d", doing, i, label[i], len(row)-1)
		}
	}
	return nil
}

// Gibbs averages the scores of the predictions of single draws, the members of an ensemble, one at a time: what a prediction
// by a draw picked at random scores on average. The scores of averaged probabilities are at least as good in LogLoss and
// Brier, by Jensen's inequality. Make it with [NewGibbs].
type Gibbs struct {
	label []int
	all   []Scores
}

// NewGibbs expects predictions of cases with these labels. [ErrSize] says that there are none.
func NewGibbs(label []int) (*Gibbs, error) {
	if len(label) == 0 {
		return nil, failf(ErrSize, "gibbs: no labels")
	}
	return &Gibbs{label: append([]int(nil), label...)}, nil
}

// Add takes the log probabilities of a member, [case][class]. The errors are those of [ScoreLog].
func (g *Gibbs) Add(logp [][]float64) error {
	s, err := ScoreLog(logp, g.label)
	if err != nil {
		return err
	}
	g.all = append(g.all, s)
	return nil
}

// AddLogits takes the logits of a member, [case][class]. [ErrSize], [ErrRange] for labels and [ErrNotFinite] are the errors.
func (g *Gibbs) AddLogits(logits [][]float64) error {
	if err := checkLabels("gibbs", logits, g.label); err != nil {
		return err
	}
	if err := checkLogits("gibbs", logits); err != nil {
		return err
	}
	logp := make([][]float64, len(logits))
	for i, z := range logits {
		logp[i] = LogSoftmax(z)
	}
	g.all = append(g.all, scoreLog(logp, g.label))
	return nil
}

// GibbsScores are the scores of the members of an ensemble.
type GibbsScores struct {
	// Mean are their means, SD their standard deviations (divisor Members - 1, NaN for a single one).
	Mean, SD Scores
	Members  int
}

// Scores are those of the members so far. [ErrSize] says that there are none.
func (g *Gibbs) Scores() (GibbsScores, error) {
	if len(g.all) == 0 {
		return GibbsScores{}, failf(ErrSize, "gibbs: no members")
	}
	r := GibbsScores{Members: len(g.all)}
	part := func(of func(Scores) float64) (mean, sd float64) {
		x := make([]float64, len(g.all))
		for i, s := range g.all {
			x[i] = of(s)
		}
		mean, variance := meanVar(x)
		return mean, math.Sqrt(variance)
	}
	r.Mean.LogLoss, r.SD.LogLoss = part(func(s Scores) float64 { return s.LogLoss })
	r.Mean.Brier, r.SD.Brier = part(func(s Scores) float64 { return s.Brier })
	r.Mean.Accuracy, r.SD.Accuracy = part(func(s Scores) float64 { return s.Accuracy })
	return r, nil
}

// GibbsScoreOf are the scores of members that are all there, log probabilities [draw][case][class]. The errors are those of
// [ScoreLog], and [ErrSize] for no draws.
func GibbsScoreOf(logp [][][]float64, label []int) (GibbsScores, error) {
	g, err := NewGibbs(label)
	if err != nil {
		return GibbsScores{}, err
	}
	for _, rows := range logp {
		if err := g.Add(rows); err != nil {
			return GibbsScores{}, err
		}
	}
	return g.Scores()
}
