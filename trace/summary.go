package trace

import "math"

// Summary is a decoded SUMMARY block: the agent's figures of the collections since the summary before it in the file,
// so that a long window can be read without replaying it. The events of the blocks it covers have the same in full.
type Summary struct {
	First, Last uint64 // the numbers of the collections that Collections describes
	At          uint64 // the collection whose sync point Types and Sites sum up, 0: none
	// OtherTypes and OtherSites are how many had no room, the smallest ones; samples of unknown type count as sites of
	// their own.
	OtherTypes, OtherSites uint64
	Collections            []CollectionRow
	Types                  []TypeSum
	Sites                  []SiteSum
}

// CollectionRow is the row of one collection in a summary. Start, Dur, Probe and Sync are ns. Before is in use before
// it, Eden to Humongous after it, bytes, Old with the archive. Objects and Bytes are the state's, if it is known.
type CollectionRow struct {
	GC, Kind, Flags, Start, Dur, Probe, Sync uint64
	Before, Eden, Survivor, Old, Humongous   uint64
	Objects, Bytes                           uint64
	Cause                                    string
}

// Bits of CollectionRow.Flags.
const (
	RowKnown  = 1 // the state after it is known
	RowSynced = 2 // a sync point is at it
)

// TypeSum is what lives of a type after the collection At, and how many objects were born and died since the sums
// before, from the census of each exact collection.
type TypeSum struct{ Type, Objects, Bytes, Born, Died uint64 }

// SiteSum is what lives of a type from one frame after the collection At: samples, and the objects and bytes that they
// stand for.
type SiteSum struct{ Type, Frame, Samples, Objects, Bytes uint64 }

// Bounds of one summary; the agent begins another one, or leaves out the smallest types and sites.
const (
	MaxCollectionRows = 1 << 13
	MaxSums           = 1 << 10
)

// MinInterval is the shortest sampling interval that the agent chooses by itself, bytes. It is also the one that it
// sets for good where a sample of each object is too many.
const MinInterval = 64 << 10

// Weight is the Horvitz–Thompson weight of a sampled object of size bytes under a mean interval: how many objects of
// its kind it stands for.
func Weight(size, interval uint64) float64 {
	if interval == 0 || size == 0 {
		return 1
	}
	return 1 / -math.Expm1(-float64(size)/float64(interval))
}

// EncodeSummary is the inverse of DecodeSummary.
func EncodeSummary(s *Summary) Block {
	b := put(nil, TagCovered, []uint64{s.First, s.Last, s.At, s.OtherTypes, s.OtherSites})
	for i := range s.Collections {
		c := &s.Collections[i]
		b = put(b, TagCollection, []uint64{c.GC, c.Kind, c.Flags, c.Start, c.Dur, c.Probe, c.Sync, c.Before,
			c.Eden, c.Survivor,
			c.Old, c.Humongous, c.Objects, c.Bytes}, c.Cause)
	}
	for _, t := range s.Types {
		b = put(b, TagTypeSum, []uint64{t.Type, t.Objects, t.Bytes, t.Born, t.Died})
	}
	for _, t := range s.Sites {
		b = put(b, TagSiteSum, []uint64{t.Type, t.Frame, t.Samples, t.Objects, t.Bytes})
	}
	return block(KindSummary, b)
}

// DecodeSummary decodes a SUMMARY block. A block without exactly one covered event, with rows beyond the bounds, or
// with collections that do not ascend within what it covers, is corrupt.
func DecodeSummary(b Block) (*Summary, error) {
	s := &Summary{}
	covered := 0
	err := rows(b, KindSummary, func(r *row) (string, error) {
		n := &r.num
		if r.ev.Tag == TagCovered {
			s.First, s.Last, s.At, s.OtherTypes, s.OtherSites = n[0], n[1], n[2], n[3], n[4]
			if covered++; covered > 1 || s.First > s.Last {
				return "not one range of collections", nil
			}
			return "", nil
		}
		switch r.ev.Tag {
		case TagCollection:
			last := uint64(0)
			if k := len(s.Collections); k > 0 {
				last = s.Collections[k-1].GC
			}
			if n[0] <= last || n[0] < s.First || n[0] > s.Last || len(s.Collections) == MaxCollectionRows {
				return "collection out of order", nil
			}
			s.Collections = append(s.Collections,
				CollectionRow{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12],
					n[13], r.str(0)})
		case TagTypeSum:
			if len(s.Types) == MaxSums {
				return "too many types", nil
			}
			s.Types = append(s.Types, TypeSum{n[0], n[1], n[2], n[3], n[4]})
		case TagSiteSum:
			if len(s.Sites) == MaxSums {
				return "too many sites", nil
			}
			s.Sites = append(s.Sites, SiteSum{n[0], n[1], n[2], n[3], n[4]})
		}
		return "", nil
	})
	return s, one(err, KindSummary, covered)
}
