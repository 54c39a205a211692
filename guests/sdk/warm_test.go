package sdk

import "testing"

// TestSample: what is read ahead is what calls may bring.
func TestSample(t *testing.T) {
	for _, d := range []Definition{Tool("t", got), Tool("t", echo), Tool("t", func(*Call, struct {
		A int    `json:"a" minimum:"5"`
		B int    `json:"b" maximum:"-5"`
		C string `json:"c" minLength:"30"`
		D string `json:"d" maxLength:"0"`
	},
	) (string, error) {
		return "", nil
	})} {
		sample := d.input.sample(nil)
		if in, err := d.decode(sample); err != nil {
			t.Errorf("%s: %+v, %v", sample, in, err)
		}
	}
}
