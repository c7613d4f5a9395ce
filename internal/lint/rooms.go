package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// roomsPicture is where `lint rooms` writes.
const roomsPicture = "docs/pictures/rooms.svg"

// writeRooms draws the rooms of a repository.
func writeRooms(root string) error {
	all, err := imports(root)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(root, roomsPicture), func(w io.Writer) error {
		_, err := io.WriteString(w, drawn(publicRooms(all)))
		return err
	})
}

// publicRooms are the public packages and the rooms that they need at once: those that they import, themselves or by
// internal packages, without those that another one of them needs in turn.
func publicRooms(all map[string][]string) map[string][]string {
	needs := map[string]map[string]bool{}
	var reach func(dir string) map[string]bool
	reach = func(dir string) map[string]bool {
		if had, ok := needs[dir]; ok {
			return had
		}
		out := map[string]bool{}
		needs[dir] = out
		for _, name := range all[dir] {
			if _, ok := all[name]; !ok || name == dir {
				continue
			}
			maps.Copy(out, reach(name))
			if !private(name) {
				out[name] = true
			}
		}
		return out
	}
	rooms := map[string][]string{}
	for dir := range all {
		if private(dir) {
			continue
		}
		rooms[dir] = nil
		for _, name := range slices.Sorted(maps.Keys(reach(dir))) {
			indirect := false
			for other := range reach(dir) {
				indirect = indirect || reach(other)[name]
			}
			if !indirect {
				rooms[dir] = append(rooms[dir], name)
			}
		}
	}
	return rooms
}

// Sizes of the picture, in points.
const (
	roomHeight, levelHeight = 22, 78
	letter, gap             = 6.6, 12.0
)

// box is a room in the picture.
type box struct {
	name        string
	level       int
	x, y, width float64 // of its middle, and its upper edge
}

// drawn is a picture of rooms: each stands above all that it needs, and as near to the middle of those as others let
// it.
func drawn(rooms map[string][]string) string {
	boxes, levels := placed(rooms)
	wide := 0.0
	for _, level := range levels {
		last := level[len(level)-1]
		wide = max(wide, last.x+last.width/2)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-size="11"
 font-family="sans-serif">
<!-- Made by go run ./internal/lint rooms. -->
<rect width="100%%" height="100%%" fill="white"/>
`, wide+gap, len(levels)*levelHeight)
	for _, name := range slices.Sorted(maps.Keys(boxes)) {
		from := boxes[name]
		for _, need := range rooms[name] {
			to := boxes[need]
			fmt.Fprintf(&out, "<path d=\"M%.0f %.0f C%.0f %.0f %.0f %.0f %.0f %.0f\" fill=\"none\" stroke=\"#9ab\"/>\n", from.x,
				from.y+roomHeight, from.x, from.y+levelHeight/2, to.x, to.y-levelHeight/3, to.x, to.y)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(boxes)) {
		b := boxes[name]
		fmt.Fprintf(&out, `<rect x="%.0f" y="%.0f" width="%.0f" height="%d" rx="4" fill="#eef4fb" stroke="#467"/>`+"\n",
			b.x-b.width/2, b.y, b.width, roomHeight)
		fmt.Fprintf(&out, `<text x="%.0f" y="%.0f" text-anchor="middle">%s</text>`+"\n", b.x, b.y+15, name)
	}
	return out.String() + "</svg>\n"
}

// placed are the boxes, by name and by level, the highest level first.
func placed(rooms map[string][]string) (boxes map[string]*box, levels [][]*box) {
	boxes = map[string]*box{}
	var place func(name string) *box
	place = func(name string) *box {
		if b, ok := boxes[name]; ok {
			return b
		}
		b := &box{name: name, width: letter*float64(len(name)) + gap}
		boxes[name] = b
		for _, need := range rooms[name] {
			b.level = max(b.level, place(need).level+1)
		}
		return b
	}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		b := place(name)
		for len(levels) <= b.level {
			levels = append(levels, nil)
		}
		levels[b.level] = append(levels[b.level], b)
	}
	for _, level := range levels {
		for _, b := range level {
			for _, need := range rooms[b.name] {
				b.x += boxes[need].x / float64(len(rooms[b.name]))
			}
		}
		slices.SortStableFunc(level, func(a, b *box) int { return cmp.Compare(a.x, b.x) })
		right := 0.0
		for _, b := range level {
			b.x = max(b.x, right+gap+b.width/2)
			right = b.x + b.width/2
			b.y = float64((len(levels)-1-b.level)*levelHeight) + gap
		}
	}
	slices.Reverse(levels)
	return boxes, levels
}
