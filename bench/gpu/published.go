package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kelvin-ppl/kelvin/models/nn/layers"
)

// experiment is a network of a paper in its published size, with the epochs of its longest chain.
type experiment struct {
	architecture
	epochs int
}

// published are ResNet-20 of Wenzel et al. (2020) with batch normalisation and with a norm that has a posterior, and
// the network of 56 layers and 32 filters of Heek and Kalchbrenner (2019), all on 50,000 images in batches of 128.
var published = []experiment{
	{architecture{"ResNet-20, batch normalisation", "resnet", layers.ResNet20{Norm: layers.BatchNorm{Batch: true}}, 128,
		50000}, 1500},
	{architecture{"ResNet-20, filter response normalisation", "resnet", layers.ResNet20{Norm: layers.FRN{}}, 128, 50000},
		1500},
	{architecture{"ResNet++ of 56 layers, 32 filters", "resnet", layers.ResNetPlusPlus{}, 128, 50000}, 1000},
}

// stepTime is that of a step of SGHMC, and what the published run would take.
type stepTime struct {
	Network    string  `json:"network"`
	Parameters int     `json:"parameters"`
	Steps      int     `json:"steps"` // that were timed
	Step       float64 `json:"step_ms"`
	Epochs     int     `json:"epochs"`
	Hours      float64 `json:"hours"`
	FiveMinute int     `json:"epochs_of_20000_images_in_5_minutes"`
	Error      string  `json:"error,omitempty"`
}

// published times fifty steps of each network, or as many as fit.
func (r *report) published(ctx context.Context, o options) error {
	for _, e := range published {
		row := stepTime{Network: e.name, Epochs: e.epochs}
		err := row.measure(ctx, e, o)
		if err != nil {
			row.Error = err.Error()
		}
		r.Published = append(r.Published, row)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

func (row *stepTime) measure(ctx context.Context, e experiment, o options) error {
	t, err := e.on(o.device)
	if err != nil {
		return err
	}
	row.Parameters = t.start.Layout.Dim()
	update, free, err := t.sghmc()
	if err != nil {
		return err
	}
	defer free()
	for range 3 { // the first choose kernels
		if err := update(); err != nil {
			return err
		}
	}
	start := time.Now()
	for row.Steps < 50 && (row.Steps == 0 || time.Since(start) < o.seconds) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := update(); err != nil {
			return err
		}
		row.Steps++
	}
	seconds := time.Since(start).Seconds() / float64(row.Steps)
	row.Step = 1e3 * seconds
	row.Hours = seconds * math.Ceil(float64(e.data)/float64(e.batch)) * float64(e.epochs) / 3600
	row.FiveMinute = int(300 / seconds / (20000. / float64(e.batch)))
	return nil
}
