package graph

import "testing"

// TestBiggestOfList: of a linked list the first element stands for all, though each retains nearly as much as the one
// before it. A map beside it is seen.
func TestBiggestOfList(t *testing.T) {
	p := newProgram()
	orders := p.leak(2000)
	p.Set(p.class("app/A", "list"), "list", p.linkedOnce(orders[:1000]))
	p.Set(p.class("app/B", "map"), "map", p.mapOf(orders[1000:]))
	g, err := Build(p.Listing(), nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, i := range g.Biggest(7) {
		seen[g.L.Shape(i).Name]++
	}
	if seen["java/util/LinkedList$Node"] > 1 || seen["java/util/HashMap"] != 1 || seen["java/util/LinkedList"] != 1 {
		t.Errorf("the biggest are %v", seen)
	}
}

// linkedOnce is a list that can be walked from its first node alone.
func (p *program) linkedOnce(of []int) int {
	l := p.New("java/util/LinkedList")
	at, field := l, "first"
	for _, o := range of {
		n := p.New("java/util/LinkedList$Node")
		p.Set(n, "item", o)
		p.Set(at, field, n)
		at, field = n, "next"
	}
	return l
}
