package hostengine

import "fmt"

// quantum is what a guest may run between two checkpoints, in units of fuel:
// about a millisecond of plain code.
const quantum = 1 << 20

// FuelError stops a guest that has used up its fuel.
type FuelError struct{ Limit uint64 } // units

// Error names the limit.
func (e *FuelError) Error() string { return fmt.Sprintf("fuel limit of %d reached", e.Limit) }

// Meter counts the fuel of one guest, whose counter begins at 0. It is not safe
// for concurrent use.
type Meter struct {
	limit   uint64 // 0: none
	spent   uint64 // before what is granted
	granted int64
}

// NewMeter returns a meter that allows so many units of fuel; 0: any number.
func NewMeter(limit uint64) *Meter { return &Meter{limit: limit} }

// Spent returns the units that were spent when the counter has come to counter.
func (m *Meter) Spent(counter int64) uint64 {
	used := m.granted - counter
	if used < 0 { // no guest sets its own counter
		used = 0
	}
	return m.spent + uint64(used)
}

// First returns where the counter of a guest may begin instead, so that short code
// comes to no checkpoint. It is called once, before the guest runs.
func (m *Meter) First() int64 {
	m.granted = quantum
	if m.limit > 0 {
		m.granted = int64(min(quantum, m.limit))
	}
	return m.granted
}

// Next pays for what the counter says and returns where it begins again. It
// returns a [*FuelError] when that was more than the limit.
func (m *Meter) Next(counter int64) (int64, error) {
	m.spent = m.Spent(counter)
	m.granted = quantum
	if m.limit == 0 {
		return m.granted, nil
	}
	if m.spent > m.limit {
		m.granted = 0
		return 0, &FuelError{m.limit}
	}
	m.granted = int64(min(quantum, m.limit-m.spent))
	return m.granted, nil
}
