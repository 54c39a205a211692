package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes is how many scrapes are answered at a time; more get 503.
const maxScrapes = 4

// Handler serves the metrics in the format that the scraper asks for: the text
// format, OpenMetrics (with exemplars), or protobuf (with native histograms and
// exemplars).
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes})
}
