package nn

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Augment changes images [n, channels, height, width] at random while they are fed to a run, each in its own way, with
// explicit random streams.
//
// Augmented data are no more data. N, the number in the target, stays that of the originals, and at prediction outputs
// are averaged over the changes or made of the originals; the density that a sampler then has is not the likelihood of
// the images (Wenzel et al. 2020, appendix K).
type Augment struct {
	Flip bool // left and right change places with probability 1/2
	Pad  int  // zeros put at each edge, before a crop to the old size at a random place; 0 for none
}

// Apply gives changed copies of images. An image takes three uniform numbers of the source, whatever the fields are: so
// one change does not move another.
func (o Augment) Apply(images torch.Tensor, source *torch.Source) (torch.Tensor, error) {
	var out torch.Tensor
	err := torch.Do(func(s *torch.Scope) error {
		changed, err := o.apply(images, source)
		if err == nil {
			out = changed
			s.Keep(out)
		}
		return err
	})
	if err != nil {
		return torch.Tensor{}, fmt.Errorf("augment: %w", err)
	}
	return out, nil
}

func (o Augment) apply(images torch.Tensor, source *torch.Source) (torch.Tensor, error) {
	if err := o.check(); err != nil {
		return torch.Tensor{}, err
	}
	if source == nil {
		return torch.Tensor{}, fmt.Errorf("there is no random source: use torch.NewSource: %w", infer.ErrConfig)
	}
	shape := images.Shape()
	if len(shape) != 4 {
		return torch.Tensor{}, fmt.Errorf("the images have shape %v: expected [n, channels, height, width]: %w", shape,
			infer.ErrConfig)
	}
	n, channels, height, width := shape[0], shape[1], shape[2], shape[3]
	u, err := source.Uniform([]int{n, 3}, gotch.Double, torch.CPU)
	if err != nil {
		return torch.Tensor{}, err
	}
	pick, err := torch.ToSlice[float64](u)
	if err != nil {
		return torch.Tensor{}, err
	}
	// Each pixel says which one of the padded image it is: one gather for all.
	wide, places := width+2*o.Pad, float64(2*o.Pad+1)
	index := make([]int, 0, n*height*width)
	for i := range n {
		flip := o.Flip && pick[3*i] < 0.5
		top, left := int(pick[3*i+1]*places), int(pick[3*i+2]*places)
		for r := range height {
			for c := range width {
				if flip {
					c = width - 1 - c
				}
				index = append(index, (r+top)*wide+c+left)
			}
		}
	}
	device, err := torch.DeviceOf(images)
	if err != nil {
		return torch.Tensor{}, err
	}
	at, err := torch.FromSliceOn(device, gotch.Int64, index, n, 1, height*width)
	if err != nil {
		return torch.Tensor{}, err
	}
	padded := torch.Of(images.T().MustConstantPadNd([]int64{int64(o.Pad), int64(o.Pad), int64(o.Pad),
		int64(o.Pad)}, false))
	padded = padded.Reshape(n, channels, -1)
	return padded.Gather(2, at.Expand(n, channels, height*width)).Reshape(shape...), nil
}

func (o Augment) check() error {
	if o.Pad < 0 || o.Pad > 1<<20 {
		return &infer.FieldError{Type: "nn.Augment", Field: "Pad", Value: o.Pad,
			Allowed: "it must be from 0 to 2^20"}
	}
	return nil
}

// Batches are batches whose images, the tensor of that name, are changed. The changes of a batch are a function of the
// seed and of the batch's position, so that a resumed run sees the same ones. Give them a seed of their own.
func (o Augment) Batches(inner infer.Batches, name string, seed uint64) (infer.Batches, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if inner == nil {
		return nil, fmt.Errorf("augment: there are no batches to change: %w", infer.ErrConfig)
	}
	return &batches{inner, o, name, seed}, nil
}

type batches struct {
	infer.Batches
	images Augment
	name   string
	seed   uint64
}

// Next is the next batch, with its images changed.
func (b *batches) Next() (infer.Batch, error) {
	at := b.Position()
	batch, err := b.Batches.Next()
	if err != nil {
		return nil, err
	}
	if batch[b.name] == (torch.Tensor{}) {
		names := []string{}
		for name := range batch {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("augment: %w", &infer.ModelError{Name: b.name, What: "batch tensor", Have: names})
	}
	// A chain of its own for each batch of an epoch; an epoch has fewer than 2^32.
	source := torch.NewSource(b.seed, uint64(at.Epoch)<<32|uint64(at.Index))
	changed, err := b.images.Apply(batch[b.name], source)
	if err != nil {
		return nil, err
	}
	out := infer.Batch{}
	for name, t := range batch {
		out[name] = t
	}
	out[b.name] = changed
	return out, nil
}

// Fingerprint is that of the batches, with the changes.
func (b *batches) Fingerprint() (string, error) {
	inner, err := b.Batches.Fingerprint()
	return fmt.Sprintf("%s augmented %q %+v %d", inner, b.name, b.images, b.seed), err
}
