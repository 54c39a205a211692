// Command weather tells the weather of a city: from the network, which has to
// be granted, or from a table of climate means that it carries.
package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/wasi"
)

func init() {
	sdk.Register(sdk.Tool(
		"get_weather", get,
		sdk.Title("Weather"),
		sdk.Description("Tells the weather of a city: now, or with offline the July mean of 1991 to 2020."),
		sdk.ReadOnly(true), sdk.OpenWorld(true),
	))
}

func main() { sdk.Main() }

type input struct {
	City    string `json:"city" description:"the name of a city" minLength:"1"`
	Offline bool   `json:"offline" default:"false" description:"answer from the built-in table"`
}

type report struct {
	City    string  `json:"city"`
	Celsius float64 `json:"celsius"`
	Source  string  `json:"source"`
}

// means are July temperatures, rounded to a degree.
var means = map[string]float64{
	"berlin": 20, "lisbon": 24, "oslo": 18, "paris": 21, "vienna": 22, "zurich": 19,
}

func get(c *sdk.Call, in input) (report, error) {
	if !in.Offline {
		return report{}, ask(c, in.City)
	}
	mean, ok := means[strings.ToLower(in.City)]
	if !ok {
		known := slices.Sorted(maps.Keys(means))
		return report{}, fmt.Errorf("city %q: not in the table, which has %s", in.City, strings.Join(known, ", "))
	}
	return report{in.City, mean, "climate mean"}, nil
}

// ask sends the question to a socket. WASI preview 1 can open none, so a host
// that grants network hands one over as the first descriptor after the
// standard ones; Go's net package would never ask the host.
func ask(c *sdk.Call, city string) error {
	question := "GET /v1/weather?city=" + city + "\r\n\r\n"
	n, e := wasi.SockSend(3, []byte(question))
	c.Logf("sock_send of %d bytes: %v", n, e)
	if e == wasi.Success {
		return fmt.Errorf("weather of %s: the network took the question and this version reads no answers", city)
	}
	return fmt.Errorf("weather of %s: no network is granted (%v); offline: true answers from the built-in table", city, e)
}
