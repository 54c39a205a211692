package runtime

// mostWarm is the largest default of [Options.Warm], in bytes.
const mostWarm = 1 << 30

// defaultWarm returns what waiting instances may take where nothing is said: an
// eighth of the machine's memory, 1 GiB at most.
func defaultWarm() uint64 {
	if total := machineMemory(); total > 0 {
		return min(total/8, mostWarm)
	}
	return mostWarm
}
