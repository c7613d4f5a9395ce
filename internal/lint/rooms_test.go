package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Internal packages are passed through, and what another need needs is left out.
func TestPublicRooms(t *testing.T) {
	all := map[string][]string{
		"a": {"b", "internal/x", "fmt"}, "b": {"c"}, "internal/x": {"c", "d"}, "c": nil, "d": nil, "cmd/k": {"a"},
	}
	rooms := publicRooms(all)
	require.Equal(t, map[string][]string{"a": {"b", "d"}, "b": {"c"}, "c": nil, "d": nil}, rooms)
	boxes, levels := placed(rooms)
	require.Len(t, levels, 3)
	for name, needs := range rooms {
		for _, need := range needs {
			require.Less(t, boxes[name].y, boxes[need].y, "%s stands above %s", name, need)
		}
	}
}

// The picture of docs/design.md is that of today's imports.
func TestRoomsPicture(t *testing.T) {
	all, err := imports("../..")
	require.NoError(t, err)
	have, err := os.ReadFile("../../" + roomsPicture)
	require.NoError(t, err)
	require.Equal(t, drawn(publicRooms(all)), string(have), "go run ./internal/lint rooms")
}
