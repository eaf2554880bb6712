package graph

import "testing"

// TestBiggestOfList: of a linked list the first element stands for all, whatever lies between two of them.
func TestBiggestOfList(t *testing.T) {
}
