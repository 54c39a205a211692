package report

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// File returns the name of the curve's plot.
func (c *Curve) File() string { return c.ID + ".svg" }

// SVG writes the curve's plot into a folder.
func (c *Curve) SVG(dir string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.Title.Padding = vg.Points(6)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	if c.Log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	for i, l := range c.Lines {
		xys := l.xys(c.Log)
		if len(xys) == 0 {
			continue
		}
		line, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return fmt.Errorf("plot %s: %s: %w", c.ID, l.Name, err)
		}
		line.Color, points.Color = plotutil.Color(i), plotutil.Color(i)
		points.Shape = plotutil.Shape(i)
		p.Add(line, points)
		p.Legend.Add(l.Name, line, points)
	}
	if !c.drawn() {
		return nil
	}
	p.Y.Max = c.above(p.Y.Max)
	if err := p.Save(20*vg.Centimeter, 12*vg.Centimeter, filepath.Join(dir, c.File())); err != nil {
		return fmt.Errorf("plot %s: %w", c.ID, err)
	}
	return nil
}

// above returns how far the y axis goes so that the legend has room above the lines.
func (c *Curve) above(top float64) float64 {
	if c.Log {
		return top * math.Pow(10, 0.2*float64(len(c.Lines)))
	}
	return top * (1 + 0.1*float64(len(c.Lines)))
}

// drawn reports whether there is a point to draw.
func (c *Curve) drawn() bool {
	return slices.ContainsFunc(c.Lines, func(l Line) bool { return len(l.xys(c.Log)) > 0 })
}

// xys returns the points that can be drawn: on a logarithmic axis those above 0.
func (l Line) xys(log bool) plotter.XYs {
	var out plotter.XYs
	for _, p := range l.Points {
		if !log || p.X > 0 && p.Y > 0 {
			out = append(out, plotter.XY{X: p.X, Y: p.Y})
		}
	}
	return out
}

// xs returns all places on the x axis.
func (c *Curve) xs() []float64 {
	var all []float64
	for _, l := range c.Lines {
		for _, p := range l.Points {
			all = append(all, p.X)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (l Line) at(x float64) (y float64, ok bool) {
	for _, p := range l.Points {
		if p.X == x {
			return p.Y, true
		}
	}
	return 0, false
}
