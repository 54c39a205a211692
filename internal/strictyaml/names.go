package strictyaml

import "strings"

// spelling returns the known name that key is another spelling of, or "".
func spelling(key string, known []string) string {
	plain := func(s string) string { return strings.NewReplacer("_", "", "-", "", " ", "").Replace(Fold(s)) }
	for _, k := range known {
		if plain(key) == plain(k) {
			return k
		}
	}
	return ""
}

// nearest returns the known name that key is most likely a slip of, or "".
func nearest(key string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(Fold(key), Fold(k)); d < least && d*2 <= len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance is how many bytes must be put in, taken out or changed to make one
// text of the other. Long texts, which are no slips, are far from all.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
