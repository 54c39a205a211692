package measure

import (
	"cmp"
	"slices"
	"time"
)

// Quantiles returns a round of calls that took so long, which are sorted
// thereby.
func Quantiles(took []time.Duration) Round {
	slices.Sort(took)
	return Round{
		P10: quantile(took, 0.10), P50: quantile(took, 0.50), P90: quantile(took, 0.90), P99: quantile(took, 0.99),
		Calls: len(took),
	}
}

// quantile returns the element of a sorted slice that the share q lies below:
// the nearest rank. Of nothing it is the zero value.
func quantile[T cmp.Ordered](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var none T
		return none
	}
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// Median returns the middle of values, the mean of the two middle ones where
// their number is even, and 0 of none.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// Figure is what is read from a round, in nanoseconds.
type Figure func(Round) float64

// The figures of a round.
var (
	P10 Figure = func(r Round) float64 { return float64(r.P10) }
	P50 Figure = func(r Round) float64 { return float64(r.P50) }
	P90 Figure = func(r Round) float64 { return float64(r.P90) }
	P99 Figure = func(r Round) float64 { return float64(r.P99) }
	CPU Figure = func(r Round) float64 { return float64(r.PerCall()) }
	// Here is what this process used for a call: the client, where servers answer.
	Here Figure = func(r Round) float64 { return float64(r.Here) / float64(max(r.Calls, 1)) }
)

// Of returns the median of a figure over the rounds.
func (s *Series) Of(f Figure) time.Duration {
	return time.Duration(Median(s.values(f)))
}

func (s *Series) values(f Figure) []float64 {
	out := make([]float64, len(s.Rounds))
	for i, r := range s.Rounds {
		out[i] = f(r)
	}
	return out
}

// PerSecond returns the median of the calls in a second.
func (s *Series) PerSecond() float64 {
	return Median(s.values(func(r Round) float64 { return float64(r.Calls) / r.Wall.Seconds() }))
}

// Ratio is a quotient of figures that were measured in the same round.
type Ratio struct {
	Median, Low, High float64 // Low and High: the quartiles over the rounds
	Rounds            int     // 0: there is none
}

// To returns a figure of s as a multiple of that of base, round by round. A
// round that one of them lacks, or where base cost nothing that can be told, is
// left out.
func (s *Series) To(base *Series, f Figure) Ratio {
	var quotients []float64
	for i := range min(len(s.Rounds), len(base.Rounds)) {
		if b := f(base.Rounds[i]); b > 0 {
			quotients = append(quotients, f(s.Rounds[i])/b)
		}
	}
	return NewRatio(quotients)
}

// Tail returns the p99 as a multiple of the p50, round by round.
func (s *Series) Tail() Ratio {
	var quotients []float64
	for _, r := range s.Rounds {
		if r.P50 > 0 {
			quotients = append(quotients, float64(r.P99)/float64(r.P50))
		}
	}
	return NewRatio(quotients)
}

// NewRatio returns the ratio that quotients come to.
func NewRatio(quotients []float64) Ratio {
	sorted := slices.Sorted(slices.Values(quotients))
	return Ratio{Median(sorted), quantile(sorted, 0.25), quantile(sorted, 0.75), len(sorted)}
}

// Inverse returns the ratio seen from the other side.
func (r Ratio) Inverse() Ratio {
	invert := func(v float64) float64 {
		if v == 0 {
			return 0
		}
		return 1 / v
	}
	return Ratio{invert(r.Median), invert(r.High), invert(r.Low), r.Rounds}
}
